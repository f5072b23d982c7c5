"""Savings against a baseline that was measured, given or predicted, over the future use of the result."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lynceus.analysis.answer import Answer, answer
from lynceus.analysis.documents.json import to_json
from lynceus.analysis.forecast import forecast
from lynceus.analysis.overview import overview
from lynceus.analysis.study_context import StudyContext
from lynceus.policy.presets import preset
from lynceus.policy.stopping import AllOf, GittinsStop, Never
from lynceus.problem.baseline import Baseline
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.outcome import End, Observations, TrainingTarget
from lynceus.trial.record import Record

JOB = small_job("runtime <= 30m", budget=Budget(50.0))
RUNS = JOB.finished(JOB.order_of_runs[:8])
SPENT = sum(seen.outcome.charged_usd for seen in RUNS)
NOT_RUN = JOB.order_of_runs[-1]


def context_of(problem: Problem, policy: str = "lynceus-2020", runs: Observations = RUNS) -> StudyContext:
    return StudyContext(StudyView(problem, preset(policy), Record("test", runs)))


def answer_of(problem: Problem, policy: str = "lynceus-2020", runs: Observations = RUNS) -> Answer:
    found = answer(context_of(problem, policy, runs))
    assert found is not None
    return found


def true_usd(job: SmallJob, row: int) -> float:
    return job.problem.cost(row, float(job.measured.seconds[row]))


def test_a_run_of_the_baseline_is_its_cost() -> None:
    row = RUNS[3].row
    for given in (Baseline(row), Baseline(row, runtime_s=1e5), Baseline(row, measure=True)):
        found = answer_of(replace(JOB.problem, baseline=given))
        assert (found.baseline_basis, found.baseline_measured) == ("measured", True)
        assert found.baseline_usd == pytest.approx(true_usd(JOB, row))
        assert (found.baseline_interval_usd, found.saving_interval, found.saved_interval_usd) == (None, None, None)
        assert found.saved_usd == pytest.approx(found.baseline_usd - found.cost_usd)


def test_a_time_that_the_user_gave_counts_where_it_was_not_run() -> None:
    problem = replace(JOB.problem, baseline=Baseline(NOT_RUN, runtime_s=7200.0), future=FutureUse(runs=40))
    found = answer_of(problem)
    assert (found.baseline_basis, found.baseline_measured) == ("given", True)
    assert found.baseline_usd == pytest.approx(problem.cost(NOT_RUN, 7200.0))
    assert found.pays_back_after_runs == pytest.approx(SPENT / found.saved_usd)
    assert found.future_saving_usd == pytest.approx(40 * found.saved_usd)
    assert (found.future.count, found.future.assumed) == (40.0, False)
    head = overview(context_of(problem))
    assert (head.saving_measured, head.saving) == (True, pytest.approx(found.saving))
    assert head.future == found.future


def test_a_prediction_is_a_range() -> None:
    dear = max(JOB.order_of_runs[8:], key=lambda row: true_usd(JOB, row))
    found = answer_of(replace(JOB.problem, baseline=Baseline(dear)))
    assert (found.baseline_basis, found.baseline_measured) == ("predicted", False)
    assert found.baseline_interval_usd is not None
    low, high = found.baseline_interval_usd
    assert 0 < low < found.baseline_usd < high
    assert found.saved_interval_usd == (pytest.approx(low - found.cost_usd), pytest.approx(high - found.cost_usd))
    assert found.saving_interval == (pytest.approx(1 - found.cost_usd / low), pytest.approx(1 - found.cost_usd / high))
    assert found.pays_back_interval_runs is not None
    fewest, most = found.pays_back_interval_runs
    assert fewest == pytest.approx(SPENT / (high - found.cost_usd))
    assert fewest < found.pays_back_after_runs < most


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2020", "random"])
def test_the_range_holds_the_truth_as_often_as_it_says(policy: str) -> None:
    inside = []
    for seed in range(2):
        job = small_job("runtime <= 30m", seed=seed)
        for runs in (3, 8):
            seen = job.finished(job.order_of_runs[:runs])
            for row in job.order_of_runs[runs::3]:
                found = answer_of(replace(job.problem, baseline=Baseline(row)), policy, seen)
                assert found.baseline_interval_usd is not None
                low, high = found.baseline_interval_usd
                inside.append(low <= true_usd(job, row) <= high)
    assert sum(inside) / len(inside) >= 0.8


def test_a_run_that_was_stopped_bounds_the_range_from_below() -> None:
    row, seconds = NOT_RUN, 1e5
    last = JOB.observation(8, row)
    stopped = replace(
        last,
        outcome=replace(last.outcome, end=End.TIMEOUT, seconds=seconds),
        target=TrainingTarget(seconds, {}, True, seconds),
    )
    found = answer_of(replace(JOB.problem, baseline=Baseline(row)), "sweep", (*RUNS, stopped))
    assert found.baseline_basis == "predicted"
    assert found.baseline_interval_usd is not None
    assert found.baseline_interval_usd[0] >= JOB.problem.cost(row, seconds) * (1 - 1e-12)
    assert found.baseline_usd <= found.baseline_interval_usd[1]


def test_nothing_is_claimed_before_there_is_a_model_or_a_baseline() -> None:
    few = answer_of(replace(JOB.problem, baseline=Baseline(NOT_RUN)), runs=RUNS[:1])
    none = answer_of(JOB.problem)
    for found in (few, none):
        document = to_json(found)
        assert (document["baseline_usd"], document["baseline_basis"], document["saving"]) == (None, None, None)
        assert (document["saved_usd"], document["future_saving_usd"], document["pays_back_after_runs"]) == (
            None,
            None,
            None,
        )
    assert (few.baseline, none.baseline) == (JOB.problem.space.point(NOT_RUN), None)


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        (preset("lynceus"), 100.0),
        (preset("sweep"), 100.0),
        (replace(preset("sweep"), stop=AllOf((Never(), GittinsStop(40.0)))), 40.0),
        (replace(preset("sweep"), stop=GittinsStop(math.inf)), 100.0),
    ],
)
def test_without_future_what_the_policy_assumes_is_named_so(policy, count: float) -> None:
    found = forecast(JOB.problem, policy)
    assert (found.future.count, found.future.assumed, found.future.unit) == (count, True, "runs")
    said = forecast(replace(JOB.problem, future=FutureUse(per_month=3, months=2)), policy)
    assert to_json(said.future) == {"count": 6.0, "unit": "runs", "per_month": 3, "months": 2, "assumed": False}
    assert said.break_even_usd == pytest.approx(said.expected_spend_usd / 6)


def test_the_plan_says_how_the_baseline_will_be_known() -> None:
    policy = preset("lynceus")
    assert forecast(JOB.problem, policy).baseline is None
    found = forecast(replace(JOB.problem, baseline=Baseline(2, runtime_s=60.0)), policy).baseline
    assert found is not None
    assert (found.runtime_s, found.cost_usd, found.measure) == (60.0, JOB.problem.cost(2, 60.0), False)


def test_an_objective_per_unit_counts_units() -> None:
    job = small_job(objective="minimize usd_per_request")
    values = {row: 0.5 + 0.01 * row for row in range(len(job.problem.space))}
    runs = tuple(
        replace(
            seen,
            outcome=replace(seen.outcome, metrics={"usd_per_request": values[seen.row]}),
            target=TrainingTarget(seen.outcome.seconds, {"usd_per_request": values[seen.row]}),
        )
        for seen in job.finished(job.order_of_runs[:8])
    )
    worst = max(runs, key=lambda seen: values[seen.row]).row
    best = min(values[seen.row] for seen in runs)
    problem = replace(job.problem, baseline=Baseline(worst), future=FutureUse(runs=2e6))
    found = answer_of(problem, "lynceus", runs)
    assert (found.future.unit, found.baseline_basis) == ("requests", "measured")
    assert found.baseline_usd == pytest.approx(values[worst])
    assert found.saved_usd == pytest.approx(values[worst] - best, abs=0.02)
    assert found.future_saving_usd == pytest.approx(2e6 * found.saved_usd)
    assert overview(context_of(problem, "lynceus", runs)).saving == pytest.approx(1 - best / values[worst])
    unknown = answer_of(replace(problem, baseline=Baseline(job.order_of_runs[-1], runtime_s=60.0)), "lynceus", runs)
    assert unknown.baseline_basis == "predicted"  # the time of a run does not tell the price of a unit
