"""Runs that earlier jobs suggest: where a sibling had its best, never at more than their share of the money, and stored as such."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.state import State
from lynceus.policy.informed import FromHistory, can_learn, informed, other_usd, suggestion, vain_charges
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.history import PastJob
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Ordinal
from lynceus.space.table import Space
from lynceus.storage.serialization import order_of, order_record
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget

SPACE = Space.build(
    [Ordinal("nodes", [2, 4, 8, 16, 32]), Ordinal("memory_gib", [8, 16, 32])], price="0.1 * nodes * memory_gib / 8"
)
NODES, MEMORY = (np.array([float(one) for one in SPACE.columns[name].tolist()]) for name in ("nodes", "memory_gib"))


PRICE = 0.1 * NODES * MEMORY / 8 / 3600


def seconds_with(data_gb: float) -> FloatArray:
    """Five times slower where the data do not fit into memory."""
    return np.asarray(40.0 * data_gb / NODES**0.9 * np.where(data_gb > MEMORY * NODES, 5.0, 1.0))


def past(seconds: FloatArray, **more: object) -> PastJob:
    columns = {name: tuple(column.tolist()) for name, column in SPACE.columns.items()}
    return PastJob("past", columns, tuple(map(float, seconds)), (False,) * len(seconds), **more)  # type: ignore[arg-type]


def problem_with(*history: PastJob, objective: str = "cost") -> Problem:
    limits = (Constraint("time", 900.0),) if objective == "cost" else ()
    return Problem(
        SPACE, Objective.parse(objective), limits, budget=Budget(usd=1000.0), history=history, deterministic=True
    )


def searched(problem: Problem, truth: FloatArray, policy: object = None) -> Study:
    clock = SimulatedClock()
    study = Study(problem, policy or informed(preset("lynceus")), clock=clock)  # type: ignore[arg-type]
    explore(study, TableExecutor(problem, Measurements(truth), clock), clock)
    return study


def test_a_sibling_suggests_its_best_configuration_at_once() -> None:
    truth = seconds_with(100.0)
    problem = problem_with(past(truth))
    feasible = np.where(truth <= 900.0, truth * problem.price, np.inf)
    plan = suggestion(State.present(problem, ()), seed=0)
    assert plan is not None
    assert plan.purpose is Purpose.HISTORY
    assert feasible[plan.row] <= 1.1 * feasible.min()
    assert plan.why.startswith("suggested by past (weight ")
    assert plan.expected is not None


def test_the_more_past_jobs_the_likelier_a_suggestion_must_be() -> None:
    """One of many fits the first runs by accident."""
    truth = seconds_with(100.0)
    problem, plain = problem_with(past(truth), past(truth)), preset("lynceus")
    plan = suggestion(State.present(problem, ()), seed=0)
    assert plan is not None
    for chance, suggests in ((1.9 * plan.score, True), (2.1 * plan.score, False)):
        study = Study(problem, replace(plain, choose=FromHistory(plain.choose, chance=min(chance, 1.0))))
        study.ask()
        assert (study.record.open_runs[0].order.plan.purpose is Purpose.HISTORY) is suggests


def test_a_single_past_job_needs_a_third_of_the_chance() -> None:
    problem, plain = problem_with(past(seconds_with(100.0))), preset("lynceus")
    plan = suggestion(State.present(problem, ()), seed=0)
    assert plan is not None
    for chance, suggests in ((2.9 * plan.score, True), (3.1 * plan.score, False)):
        assert chance <= 1.0
        study = Study(problem, replace(plain, choose=FromHistory(plain.choose, chance=chance)))
        study.ask()
        assert (study.record.open_runs[0].order.plan.purpose is Purpose.HISTORY) is suggests


def test_a_suggestion_says_what_it_is_worth() -> None:
    """So that a stopping rule and a fleet can weigh it; NaN before any run has kept the limits."""
    truth = seconds_with(100.0)
    study = searched(problem_with(past(truth)), truth)
    plans = [one.order.plan for one in study.observations if one.order.plan.purpose is Purpose.HISTORY]
    feasible = np.minimum.accumulate(np.where(truth[[one.row for one in study.observations]] <= 900.0, 0, 1))
    before = {one.order.number: place == 0 or feasible[place - 1] == 1 for place, one in enumerate(study.observations)}
    for one in study.observations:
        plan = one.order.plan
        if plan in plans:
            assert np.isnan(plan.gain) == np.isnan(plan.best_rate) == before[one.order.number]


def test_a_metric_is_suggested_where_it_was_best() -> None:
    truth = seconds_with(100.0)
    rate = 1e4 / truth
    problem = problem_with(past(truth, metrics={"rate": tuple(rate.tolist())}), objective="maximize rate")
    plan = suggestion(State.present(problem, ()), seed=0)
    assert plan is not None
    assert rate[plan.row] >= rate.max() / 1.15


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 2.0), st.integers(0, 3))
def test_vain_suggestions_never_cost_more_than_their_share(seed: int, share: float, patience: int) -> None:
    """Whatever the past says: from its second suggestion on, its vain runs, with what the next is expected to cost, are at most `share` of
    all others, and less with every further vain one."""
    random = np.random.default_rng(seed)
    lie = past(seconds_with(100.0) * np.exp(random.normal(0, 0.4, len(SPACE))) * np.where(MEMORY > 8, 6.0, 1.0))
    plain = preset("lynceus")
    study = searched(
        problem_with(lie),
        seconds_with(100.0),
        replace(plain, choose=FromHistory(plain.choose, share=share, patience=patience)),
    )
    seen = study.observations
    suggested = [place for place, one in enumerate(seen) if one.order.plan.purpose is Purpose.HISTORY]
    for place in suggested[1:]:
        before = State.present(study.problem, seen[:place])
        vain = vain_charges(before)
        most = share * other_usd(before) / 2 ** max(len(vain) - patience, 0)
        assert sum(vain) + seen[place].order.plan.usd <= most + 1e-12


@pytest.mark.parametrize(("second_s", "vain"), [(99.0, True), (94.0, False), (101.0, True)])
def test_a_suggestion_that_hardly_improves_on_the_best_was_vain(second_s: float, vain: bool) -> None:
    problem, seen = problem_with(objective="time"), []
    for number, seconds in enumerate((100.0, second_s)):
        order = Order(number, number, 1e4, 1.0, Plan(number, why="", purpose=Purpose.HISTORY))
        seen.append(Observation(order, Outcome(End.FINISHED, seconds, 0.25), TrainingTarget(seconds)))
    assert vain_charges(State.present(problem, tuple(seen))) == ([0.25] if vain else [])


def test_what_is_reserved_for_an_open_suggestion_counts_as_vain() -> None:
    problem = problem_with(objective="time")
    order = Order(0, 0, 1e4, 1.5, Plan(0, why="", purpose=Purpose.HISTORY))
    assert vain_charges(State.present(problem, (), (order,))) == [1.5]


def test_a_past_that_disappoints_suggests_less() -> None:
    """Not only the money of its vain suggestions counts, but how many there were."""
    plain, random = preset("lynceus"), np.random.default_rng(3)
    lie = past(seconds_with(100.0) * np.exp(random.normal(0, 0.4, len(SPACE))) * np.where(MEMORY > 8, 6.0, 1.0))
    counts = []
    for patience in (20, 0):
        chooser = FromHistory(plain.choose, patience=patience, chance=0.0)
        study = searched(problem_with(lie), seconds_with(100.0), replace(plain, choose=chooser))
        counts.append(len(vain_charges(State.present(study.problem, study.observations))))
    assert counts[0] > counts[1]


@pytest.mark.parametrize("how", ["inverted", "shuffled"])
def test_misleading_history_changes_nothing(how: str) -> None:
    truth = seconds_with(100.0)
    logs = np.log(truth)
    wrong = np.exp(2 * logs.mean() - logs) if how == "inverted" else np.random.default_rng(4).permutation(truth)
    misled, plain = searched(problem_with(past(wrong)), truth), searched(problem_with(), truth, preset("lynceus"))
    assert [one.row for one in misled.observations] == [one.row for one in plain.observations]


def test_a_search_with_a_sibling_costs_less() -> None:
    truth = seconds_with(100.0)
    helped = searched(problem_with(past(seconds_with(100.0))), truth)
    plain = searched(problem_with(), truth, preset("lynceus"))
    best = np.where(truth <= 900.0, truth * PRICE, np.inf).min()

    def until_near(study: Study) -> float:
        spent = 0.0
        for one in study.observations:
            spent += one.outcome.charged_usd
            if truth[one.row] <= 900.0 and truth[one.row] * PRICE[one.row] <= 1.1 * best:
                return spent
        return float("inf")

    assert until_near(helped) < until_near(plain)


def test_only_the_default_learns_and_policy_files_may_name_the_part() -> None:
    problem = problem_with(past(seconds_with(100.0)))
    assert can_learn(preset("lynceus"), problem)
    assert not can_learn(preset("cherrypick"), problem)
    assert not can_learn(informed(preset("lynceus")), problem), "once is enough"
    assert not can_learn(preset("lynceus"), problem_with())
    policy = informed(preset("lynceus"))
    assert compose(describe(policy)) == policy


def test_the_purpose_is_stored() -> None:
    problem = problem_with(past(seconds_with(100.0)))
    study = Study(problem, informed(preset("lynceus")))
    study.ask()
    order = study.record.open_runs[0].order
    assert order.plan.purpose is Purpose.HISTORY
    assert order_of(order_record(order)).plan.purpose is Purpose.HISTORY


def test_without_a_usable_history_it_decides_as_the_policy_itself() -> None:
    problem, truth = problem_with(), seconds_with(20.0)
    with_part, alone = (searched(problem, truth, policy) for policy in (informed(preset("lynceus")), preset("lynceus")))
    assert [seen.row for seen in with_part.observations] == [seen.row for seen in alone.observations]


def test_what_broke_a_limit_on_a_metric_there_is_not_suggested_here() -> None:
    """Compression ratios differ by little: 0.39 is far above a limit of 0.33 although its logarithm is near."""
    space = Space.build([Ordinal("level", list(range(1, 13))), Ordinal("threads", [1, 2, 4])], price="0.05 * threads")
    level, threads = (np.array([float(one) for one in space.columns[name].tolist()]) for name in ("level", "threads"))
    seconds, ratio = 4.0 * (1 + 0.6 * level) / threads**0.7, 0.40 - 0.008 * level
    columns = {name: tuple(column.tolist()) for name, column in space.columns.items()}
    told = PastJob("past", columns, tuple(seconds), (False,) * len(space), metrics={"ratio": tuple(ratio)})
    limits = (Constraint("time", 600.0), Constraint("ratio", 0.33))
    study = Study(
        Problem(space, constraints=limits, budget=Budget(usd=50.0), history=(told,)), informed(preset("lynceus"))
    )
    suggested = []
    for _ in range(6):
        trial = study.ask()
        assert trial is not None
        row = space.row(trial.params)
        if study.record.open_runs[0].order.plan.purpose is Purpose.HISTORY:
            suggested.append(row)
        runs_s = 2 * float(seconds[row])
        if trial.timeout is not None and runs_s > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=runs_s, metrics={"ratio": float(ratio[row])})
    assert suggested
    assert all(ratio[row] <= 0.33 for row in suggested[1:]), (
        "only the first suggestion does not know the level of the metric"
    )
