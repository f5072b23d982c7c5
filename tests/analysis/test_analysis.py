"""Answers computed from observations, checked against brute force and cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.analysis.answer import answer
from lynceus.analysis.calibration import calibration
from lynceus.analysis.candidates import candidates
from lynceus.analysis.forecast import forecast
from lynceus.analysis.importance import first_order_shares, importance
from lynceus.analysis.pareto import Point, finished_points, pareto_front
from lynceus.analysis.progress import progress
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.trial_filter import select_trials
from lynceus.analysis.trial_rows import flat_rows, trial_rows
from lynceus.analysis.whatif import whatif, with_deadline, with_prices
from lynceus.policy.presets import preset
from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.study.view import StudyView
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget
from lynceus.trial.record import OpenRun, Record

SPACE = Space.build([Categorical("vm", ["a", "b", "c"]), Ordinal("nodes", [1, 2, 4])], price="1.0 * nodes")
PROBLEM = Problem(SPACE, constraints=(Constraint("time", 600.0),), budget=Budget(10.0))


def run(
    number: int, params: dict[str, object], seconds: float, end: End = End.FINISHED, **metrics: float
) -> Observation:
    row = SPACE.row(params)
    charged = PROBLEM.cost(row, seconds)
    reason = FailureReason.JOB if end is End.FAILED else None
    target = None if end is End.FAILED else TrainingTarget(seconds, metrics, end is End.TIMEOUT, seconds)
    return Observation(
        Order(number, row, math.inf, charged, Plan(row, "test")),
        Outcome(end, seconds, charged, metrics, reason=reason),
        target,
    )


OBSERVATIONS = (
    run(0, {"vm": "a", "nodes": 4}, 300.0),  # $0.333
    run(1, {"vm": "b", "nodes": 1}, 900.0),  # $0.25, late
    run(2, {"vm": "a", "nodes": 2}, 400.0),  # $0.222
    run(3, {"vm": "c", "nodes": 4}, 200.0, End.TIMEOUT),  # at least $0.222
    run(4, {"vm": "c", "nodes": 1}, 5.0, End.FAILED),
)


def record(*open_runs: OpenRun) -> Record:
    return Record("test", OBSERVATIONS, open_runs)


def subject(problem: Problem = PROBLEM, baseline: Baseline | None = None) -> StudyContext:
    return StudyContext(StudyView(replace(problem, baseline=baseline), preset("bo"), record()))


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(0.01, 9)), min_size=1, max_size=25))
def test_the_front_is_what_no_other_point_dominates(pairs: list[tuple[float, float]]) -> None:
    points = [Point(number, 0, {}, seconds, usd, True) for number, (seconds, usd) in enumerate(pairs)]
    front = pareto_front(points)

    def beaten(one: Point) -> bool:
        return any(
            other.runtime_s <= one.runtime_s
            and other.cost_usd <= one.cost_usd
            and (other.runtime_s, other.cost_usd) != (one.runtime_s, one.cost_usd)
            for other in points
        )

    expected = {(one.runtime_s, one.cost_usd) for one in points if not beaten(one)}
    assert {(one.runtime_s, one.cost_usd) for one in front} == expected
    assert [one.runtime_s for one in front] == sorted(one.runtime_s for one in front)


def test_only_finished_runs_are_points() -> None:
    assert [(point.number, point.keeps_constraints) for point in finished_points(PROBLEM, OBSERVATIONS)] == [
        (0, True),
        (1, False),
        (2, True),
    ]


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_shares_of_an_additive_function_add_up_to_one(effects: list[float]) -> None:
    one = dict(zip(["a", "b", "c"], effects[:3], strict=True))
    other = dict(zip([1, 2, 4], effects[3:], strict=True))
    values = np.array(
        [one[str(SPACE.point(row)["vm"])] + other[int(str(SPACE.point(row)["nodes"]))] for row in range(len(SPACE))]
    )
    found = {
        part.parameter: part for part in first_order_shares(PROBLEM, values - values.min() - 1.0)
    }  # negative: no logarithm
    total = np.var(values)
    if total < 1e-9:
        return
    assert found["vm"].share == pytest.approx(np.var(list(one.values())) / total, abs=1e-9)
    assert found["vm"].share + found["nodes"].share == pytest.approx(1.0)


def test_an_interaction_belongs_to_no_parameter_alone() -> None:
    values = np.array([1.0 if (code[0] + code[1]) % 2 else -1.0 for code in SPACE.codes])
    assert sum(part.share for part in first_order_shares(PROBLEM, values)) < 0.2


def test_effects_are_means_over_rows() -> None:
    values = np.arange(1.0, 10.0)
    nodes = next(part for part in first_order_shares(PROBLEM, values) if part.parameter == "nodes")
    by_hand = [
        (value, np.mean([values[row] for row in range(9) if SPACE.point(row)["nodes"] == value])) for value in (1, 2, 4)
    ]
    assert dict(nodes.effect) == pytest.approx(dict(by_hand))


def test_importance_needs_runs() -> None:
    assert importance(PROBLEM, preset("bo"), OBSERVATIONS[:1], seed=0) == []
    assert {part.parameter for part in importance(PROBLEM, preset("bo"), OBSERVATIONS, seed=0)} == {"vm", "nodes"}


def test_predictions_are_judged_and_stopped_runs_only_when_they_can_tell() -> None:
    def predicted(number: int, mean: float, std: float, seconds: float, end: End) -> Observation:
        plan = Plan(0, "test", expected=Expected("log time", (mean,), (std,)))
        return Observation(Order(number, 0, 1e9, 1.0, plan), Outcome(end, seconds, 0.1), TrainingTarget(seconds))

    inside, outside = math.log(100.0), math.log(10.0)
    found = calibration(
        PROBLEM,
        (
            predicted(0, inside, 0.1, 105.0, End.FINISHED),
            predicted(1, outside, 0.1, 100.0, End.FINISHED),
            predicted(2, inside, 0.1, 50.0, End.TIMEOUT),  # may still end inside
            predicted(3, outside, 0.1, 100.0, End.TIMEOUT),  # has left the interval already
        ),
    )
    assert [one.inside for one in found.predictions] == [True, False, None, False]
    assert found.coverage == pytest.approx(1 / 3)
    assert (found.inside, found.judged) == (1, 3)
    assert found.median_factor == pytest.approx((1.05 + 10.0) / 2)
    first = found.predictions[0]
    assert first.low_s == pytest.approx(100 * math.exp(-1.2815515655 * 0.1))
    assert first.middle_s == pytest.approx(100.0)


def test_predicted_costs_become_times_through_the_price() -> None:
    row = SPACE.row({"vm": "a", "nodes": 4})
    plan = Plan(row, "test", expected=Expected("cost", (0.5,), (0.1,)))
    seen = Observation(Order(0, row, 1e9, 1.0, plan), Outcome(End.FINISHED, 400.0, 0.4), TrainingTarget(400.0))
    assert calibration(PROBLEM, (seen,)).predictions[0].middle_s == pytest.approx(0.5 / 4.0 * 3600)


def test_progress_keeps_the_incumbent_and_adds_up_the_money() -> None:
    found = progress(PROBLEM, OBSERVATIONS)
    assert [point.best_trial for point in found] == [0, 0, 2, 2, 2]
    assert found[-1].best_value == pytest.approx(2.0 * 400 / 3600)
    assert found[-1].spent_usd == pytest.approx(sum(seen.outcome.charged_usd for seen in OBSERVATIONS))


def test_progress_of_a_maximised_metric_keeps_its_sign() -> None:
    problem = Problem(SPACE, Objective("accuracy", maximise=True))
    observations = (
        run(0, {"vm": "a", "nodes": 1}, 9.0, accuracy=0.5),
        run(1, {"vm": "b", "nodes": 1}, 9.0, accuracy=0.7),
    )
    assert [point.best_value for point in progress(problem, observations)] == [0.5, 0.7]


@pytest.mark.parametrize("deadline", [100.0, 250.0, 350.0, 450.0, 1000.0])
def test_whatif_answers_like_a_search_through_the_runs(deadline: float) -> None:
    found = whatif(with_deadline(PROBLEM, deadline), preset("bo"), OBSERVATIONS, label="x", seed=0)
    in_time = [seen for seen in OBSERVATIONS if seen.outcome.end is End.FINISHED and seen.outcome.seconds <= deadline]
    if not in_time:
        assert found.measured is None
    else:
        best = min(in_time, key=lambda seen: PROBLEM.cost(seen.row, seen.outcome.seconds))
        assert found.measured is not None
        assert found.measured.row == best.row
    # Trial 3 was stopped at 200 s and $0.222: it may be the answer only for a later deadline and while nothing as cheap is known.
    assert found.undecided == (1 if deadline in (250.0, 350.0) else 0)


def test_whatif_keeps_other_constraints_and_the_confidence() -> None:
    problem = PROBLEM.with_constraints(
        (Constraint("time", 600.0, confidence=0.9), Constraint("accuracy", 0.8, at_least=True))
    )
    changed = with_deadline(problem, 60.0)
    assert changed.constraints == (Constraint("time", 60.0, confidence=0.9), Constraint("accuracy", 0.8, at_least=True))


def test_other_prices_change_the_answer_without_a_run() -> None:
    changed = with_prices(PROBLEM, "price * 10 if nodes == 2 else price")
    assert changed.cost(OBSERVATIONS[2].row, 400.0) == pytest.approx(10 * PROBLEM.cost(OBSERVATIONS[2].row, 400.0))
    found = whatif(changed, preset("bo"), OBSERVATIONS, label="x", seed=0)
    assert found.measured is not None
    assert found.measured.params == {"vm": "a", "nodes": 4}


def test_the_answer_shows_how_cost_and_saving_were_computed() -> None:
    baseline = Baseline(SPACE.row({"vm": "a", "nodes": 4}))
    found = answer(subject(baseline=baseline))
    assert found is not None
    assert found.cost_basis == "$2.00/h × 6m40s = $0.22 (measured)"
    assert (found.trial, found.runs, found.feasible_runs, found.baseline_measured) == (2, 1, 1, True)
    assert found.saving == pytest.approx(1 - (2 * 400) / (4 * 300))
    spent = sum(seen.outcome.charged_usd for seen in OBSERVATIONS)
    assert found.pays_back_after_runs == pytest.approx(spent / (4 * 300 / 3600 - 2 * 400 / 3600))


def test_the_answer_names_boot_and_rounding() -> None:
    problem = Problem(
        SPACE, constraints=PROBLEM.constraints, billing=Billing(granularity_s=60.0, boot_s=30.0, fee_usd=0.01)
    )
    found = answer(subject(problem))
    assert found is not None
    assert "(6m40s + 30s boot) + $0.01 = " in found.cost_basis
    assert "billed per 1m" in found.cost_basis
    assert math.isnan(found.saving)


def test_there_is_no_answer_without_a_feasible_run() -> None:
    assert answer(subject(), with_deadline(PROBLEM, 1.0)) is None


def test_candidates_are_open_and_sorted_by_gain_per_dollar() -> None:
    found = candidates(PROBLEM, preset("bo"), OBSERVATIONS, seed=0, most=20)
    rows = {seen.row for seen in OBSERVATIONS}
    assert found
    assert not rows & {one.row for one in found}
    assert [one.gain_per_usd for one in found] == sorted((one.gain_per_usd for one in found), reverse=True)
    assert all(0 <= one.probability <= 1 for one in found)


@pytest.mark.parametrize(("parallel", "trials", "usd"), list(product((1, 3), (None, 5), (0.5, 100.0, math.inf))))
def test_a_forecast_is_consistent_and_never_above_the_budget(parallel: int, trials: int | None, usd: float) -> None:
    problem = Problem(SPACE, constraints=(Constraint("time", 600.0),), budget=Budget(usd, trials))
    found = forecast(problem, preset("lynceus-2020"), parallel=parallel)
    assert found.expected_spend_usd <= found.worst_spend_usd * (1 + 1e-9)
    assert found.worst_spend_usd <= usd
    assert found.expected_time_s <= found.worst_time_s * (1 + 1e-9)
    assert found.trials_at_most == (9 if trials is None else 5)
    assert found.run_limit_s == 600.0
    assert found.run_high_usd == pytest.approx(4.0 / 6)


def test_a_forecast_warns_when_only_the_budget_bounds_a_run() -> None:
    found = forecast(Problem(SPACE, budget=Budget(5.0)), preset("random"), parallel=4)
    assert "one after another" in found.warning
    assert not forecast(PROBLEM, preset("sweep"), parallel=4).warning


def test_a_forecast_without_bounds_says_so() -> None:
    found = forecast(Problem(SPACE), preset("obol"))
    assert math.isinf(found.worst_spend_usd)
    assert "bounds a run" in found.basis


def test_rows_have_every_trial_once() -> None:
    study = StudyView(PROBLEM, preset("bo"), record(OpenRun(Order(5, 8, 60.0, 0.1, Plan(8, "next")))))
    rows = trial_rows(PROBLEM, select_trials(study))
    assert [row.state for row in rows] == ["COMPLETE", "COMPLETE", "COMPLETE", "TIMEOUT", "FAIL", "RUNNING"]
    assert [row.keeps_constraints for row in rows] == [True, False, True, None, None, None]
    flat = flat_rows(study)
    assert all(list(row) == list(flat[0]) for row in flat)
    assert flat[0]["params_vm"] == "a"
