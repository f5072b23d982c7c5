"""A baseline that is to be measured is the first trial, runs to its end, and leaves the search its money."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lynceus
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.state import State
from lynceus.policy.baseline_run import baseline_order
from lynceus.policy.next_step import next_step
from lynceus.policy.policy import Policy
from lynceus.policy.presets import PRESETS, preset
from lynceus.policy.retries import RetryRules, with_retries
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.baseline import Baseline
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.order import Order, Purpose
from lynceus.trial.outcome import End, FailureReason
from lynceus.trial.record import OpenRun, Record
from retry_cases import problem_of, run

MEASURED = replace(problem_of(), baseline=Baseline(4, measure=True))
"""A dollar per second, a budget of $1000, a deadline of 100 s."""


def order_after(*observations, problem: Problem = MEASURED, policy: Policy | None = None, **record) -> Order:
    chosen = preset("lynceus") if policy is None else policy
    decision = next_step(
        problem, chosen, RetryRules(retries_infra=1), Record("x", observations, **record), seed=0
    ).decision
    assert isinstance(decision, Order)
    return decision


@pytest.mark.parametrize("name", PRESETS)
def test_the_first_trial_of_every_policy_measures_it(name: str) -> None:
    order = order_after(policy=preset(name), queue=(1,))
    assert (order.row, order.plan.purpose, order.plan.why) == (4, Purpose.BASELINE, "measures the baseline")
    assert not order.plan.stoppable


def test_it_runs_to_its_end_and_leaves_half_of_the_money() -> None:
    order = order_after()
    assert order.timeout_s == pytest.approx(500.0)  # beyond the deadline of 100 s
    assert order.reserved_usd == pytest.approx(500.0)
    limited = replace(preset("lynceus"), timeout=Timeout(AtMost(70.0)))
    assert order_after(policy=limited).timeout_s == 70.0
    endless = replace(MEASURED, budget=Budget(trials=3))
    assert order_after(problem=endless).timeout_s == float("inf")


def test_it_is_measured_once() -> None:
    for done in (
        run(4, End.FINISHED, 300.0, purpose=Purpose.BASELINE),
        run(4, End.TIMEOUT, 500.0, purpose=Purpose.BASELINE),
        run(4, End.FINISHED, 20.0, purpose=Purpose.IMPORT),
        run(4, FailureReason.JOB, purpose=Purpose.BASELINE),
        run(4, FailureReason.USER, purpose=Purpose.BASELINE),
    ):
        assert order_after(done).plan.purpose is not Purpose.BASELINE, done
    first = order_after()
    assert order_after(open_runs=(OpenRun(first),)).plan.purpose is not Purpose.BASELINE
    assert order_after(problem=replace(MEASURED, baseline=Baseline(4))).plan.purpose is Purpose.SEARCH


def test_machines_that_failed_and_runs_stopped_by_the_search_do_not_count() -> None:
    lost = run(4, FailureReason.INFRA, purpose=Purpose.BASELINE)
    assert order_after(lost).plan.purpose is Purpose.BASELINE
    assert order_after(lost, lost).plan.purpose is not Purpose.BASELINE  # one retry
    assert order_after(run(4, End.TIMEOUT, 5.0)).plan.purpose is Purpose.BASELINE


def test_without_money_the_search_goes_on() -> None:
    poor = replace(problem_of(usd=30.0), baseline=Baseline(4, measure=True))
    spent = with_retries((run(0, End.FINISHED, 30.0),), RetryRules())
    assert baseline_order(State.present(poor, spent), preset("lynceus"), 1) is None


def test_other_workers_search_meanwhile() -> None:
    first = order_after()
    second = order_after(open_runs=(OpenRun(first),))
    assert (second.row != first.row, second.plan.purpose) == (True, Purpose.SEARCH)
    assert first.reserved_usd + second.reserved_usd <= 1000.0


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2020", "sweep"])
def test_a_study_measures_it_and_ends(policy: str) -> None:
    clock = SimulatedClock()
    problem = replace(MEASURED, baseline=Baseline(5, measure=True))
    seconds = np.array([90.0, 60.0, 80.0, 85.0, 95.0, 400.0])
    study = Study(problem, preset(policy), clock=clock)
    explore(study, TableExecutor(problem, Measurements(seconds), clock), clock)
    first = study.observations[0]
    assert (first.row, first.order.plan.purpose, first.outcome.seconds) == (5, Purpose.BASELINE, 400.0)
    assert study.over
    assert study.best_params == {"n": 2}
    assert sum(seen.order.plan.purpose is Purpose.BASELINE for seen in study.observations) == 1


def test_the_journal_keeps_the_purpose(tmp_path) -> None:
    space = lynceus.Space.build([lynceus.Integer("n", 1, 4)], price="0.1 * n")
    given = {"config": {"n": 4}, "measure": True}
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = lynceus.create_study(space=space, budget="$9", storage=url, baseline=given, future={"runs": 7})
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=60.0)
    again = lynceus.create_study(
        space=space, budget="$9", storage=url, baseline=given, future={"runs": 7}, load_if_exists=True
    )
    assert again.observations[0].order.plan.purpose is Purpose.BASELINE
    following = again.ask()
    assert following is not None
    assert following.params != {"n": 4}
