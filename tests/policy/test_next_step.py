"""`decide` and `observe`: deterministic, within budget and faithful to outcomes, for random problems, policies and failures."""

import dataclasses
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deciding import decide
from lynceus.models.state import State
from lynceus.policy.next_step import observe
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Order, Purpose
from lynceus.trial.outcome import End, FailureReason, Outcome, TrainingTarget
from lynceus.trial.stop import Stopped, StopReason
from simulated_search import Watched, explore, outcome_of
from strategies import READY, SHORT, jobs, policies

TESTS = Path(__file__).parents[1]


def ordered(step: Order | Stopped) -> Order:
    assert isinstance(step, Order), step
    return step


def stopped(step: Order | Stopped) -> Stopped:
    assert isinstance(step, Stopped), step
    return step


def some_failures(seed: int, period: int) -> dict[int, FailureReason]:
    """Every `period`-th trial fails, with alternating reasons; none if `period` is 0."""
    reasons = list(FailureReason)
    return (
        {number: reasons[(number // period + seed) % len(reasons)] for number in range(0, 400, period)}
        if period
        else {}
    )


failure_patterns = st.tuples(st.integers(0, 4), st.sampled_from([0, 0, 2, 3, 5]))


@pytest.mark.parametrize("name", READY)
@settings(max_examples=25)
@given(
    data=st.data(), job=jobs(), parallel=st.integers(1, 3), failing=failure_patterns, repeats=st.sampled_from([1, 1, 2])
)
def test_a_search_respects_budget_repeats_and_trial_limit(
    name: str, data: st.DataObject, job: SmallJob, parallel: int, failing: tuple[int, int], repeats: int
) -> None:
    policy = data.draw(policies(name))
    job = dataclasses.replace(job, problem=replace(job.problem, repeats=repeats))
    failures = some_failures(*failing)
    search = explore(job, policy, seed=3, parallel=parallel, fails=lambda row, number: failures.get(number), most=150)
    check_budget(job, search)
    check_rows(search, repeats)
    check_outcomes(job, search)
    check_limits(job, search)
    assert search.stopped is not None
    assert search.stopped.reason


def check_budget(job: SmallJob, search: Watched) -> None:
    budget = job.problem.budget.usd
    assert search.most_committed_usd <= budget * (1 + 1e-7) or math.isinf(budget)
    assert search.spent_usd <= budget * (1 + 1e-7)
    for seen in search.observations:
        assert seen.outcome.charged_usd <= seen.order.reserved_usd * (1 + 1e-7) or math.isinf(budget)


def check_rows(search: Watched, repeats: int) -> None:
    assert len(search.orders) == len(search.moments) == len(search.observations)
    for order, (settled, running) in zip(search.orders, search.moments, strict=True):
        own = [seen for seen in search.observations[:settled] if seen.row == order.row]
        before = [seen.outcome.reason for seen in own]
        stopped_s = [seen.order.timeout_s for seen in own if seen.outcome.end is End.TIMEOUT]
        longer = bool(stopped_s) and order.row not in running and order.timeout_s > 1.05 * max(stopped_s)
        if order.plan.purpose is not Purpose.CONFIRM:
            assert before.count(None) + running.count(order.row) < repeats or longer, "stopped runs may only run longer"
        assert not set(before) & {FailureReason.JOB, FailureReason.OOM, FailureReason.USER}, (
            "a configuration that caused a failure must not run again"
        )


def check_outcomes(job: SmallJob, search: Watched) -> None:
    for seen in search.observations:
        outcome, price = seen.outcome, float(job.problem.price[seen.row])
        expected = outcome_of(job, seen.order, outcome.reason)
        assert outcome == expected, "observe must not change the outcome"
        charge = job.problem.billing.charge(outcome.seconds, price, boots=seen.order.boots)
        assert outcome.charged_usd == pytest.approx(charge)
        if outcome.end is End.TIMEOUT:
            assert outcome.seconds == seen.order.timeout_s
            assert seen.target is None or seen.target.seconds >= outcome.seconds
        if outcome.end is End.FINISHED:
            assert seen.target == TrainingTarget(outcome.seconds, outcome.metrics)
        if outcome.end is End.FAILED:
            assert seen.target is None


def check_limits(job: SmallJob, search: Watched) -> None:
    assert job.problem.budget.trials is None or len(search.orders) <= job.problem.budget.trials
    assert [order.number for order in search.orders] == list(range(len(search.orders)))


@settings(max_examples=30)
@given(job=jobs(), policy=policies(), runs=st.integers(0, 12), open_trials=st.integers(0, 2))
def test_decide_and_observe_are_pure(job: SmallJob, policy: Policy, runs: int, open_trials: int) -> None:
    observations = job.finished(job.order_of_runs[:runs])
    pending: tuple[Order, ...] = ()
    for _ in range(open_trials):
        step = decide(job.problem, policy, observations, pending, seed=11)
        if isinstance(step, Order):
            pending = (*pending, step)
    before = repr((observations, pending))
    first = decide(job.problem, policy, observations, pending, seed=11, elapsed_s=5.0)
    assert repr(first) == repr(decide(job.problem, policy, observations, pending, seed=11, elapsed_s=5.0))
    assert repr((observations, pending)) == before
    if isinstance(first, Order):
        outcome = outcome_of(job, first)
        seen = observe(job.problem, policy, observations, first, outcome)
        assert repr(seen) == repr(observe(job.problem, policy, observations, first, outcome))
        assert seen.outcome is outcome
        assert seen.order is first


@pytest.mark.parametrize("name", list(SHORT))
@pytest.mark.parametrize("reason", list(FailureReason))
def test_a_search_continues_after_a_failed_first_run(name: str, reason: FailureReason) -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=3.0))
    policy = preset(name, SHORT[name])
    search = explore(job, policy, seed=1, fails=lambda row, number: reason if number == 0 else None)
    repeated = search.rows[0] in search.rows[1:]
    if reason in (FailureReason.JOB, FailureReason.OOM, FailureReason.USER):
        assert not repeated, "a configuration that caused a failure must not run again"
    elif name in ("sweep", "random", "lynceus-2020"):
        assert repeated, "an infrastructure failure must not exclude the configuration"
    # The first configuration that works ends a search by known cost.
    assert len(search.orders) > (1 if name == "known-cost" else 2)


@pytest.mark.parametrize("name", list(SHORT))
def test_a_search_ends_when_every_run_fails(name: str) -> None:
    job = small_job("runtime <= 30m", "accuracy >= 0.8")
    search = explore(job, preset(name, SHORT[name]), fails=lambda row, number: FailureReason.JOB)
    assert sorted(search.rows) == list(range(len(job.problem.space)))
    assert search.stopped is not None
    assert search.stopped.kind is StopReason.EXHAUSTED


@pytest.mark.parametrize("name", list(SHORT))
def test_a_search_continues_when_no_run_reports_the_metric(name: str) -> None:
    job = small_job("runtime <= 30m", "memory <= 8", budget=Budget(usd=3.0))
    search = explore(job, preset(name, SHORT[name]))
    assert len(search.orders) > 1
    assert math.isnan(State.present(job.problem, search.observations).best[0]), (
        "a run without the metric satisfies no constraint"
    )


def test_the_timeout_is_the_minimum_of_incumbent_deadline_and_budget() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=5.0))
    observations = job.finished(job.order_of_runs[:8])
    spent = sum(seen.outcome.charged_usd for seen in observations)
    best = float(State.present(job.problem, observations).best[0])
    order = ordered(decide(job.problem, preset("sweep"), observations, seed=0))
    price = float(job.problem.price[order.row])
    assert order.timeout_s == pytest.approx(min(best / price, 1800.0, (5.0 - spent) / price))
    assert order.reserved_usd == pytest.approx(order.timeout_s * price)
    small_budget = job.problem.with_budget(spent + 0.01)
    small_budget_order = ordered(decide(small_budget, preset("sweep"), observations, seed=0))
    assert small_budget_order.timeout_s == pytest.approx(0.01 / float(small_budget.price[small_budget_order.row]))


def test_the_budget_limits_the_timeout_without_a_deadline() -> None:
    job = small_job(budget=Budget(usd=0.02))
    order = ordered(decide(job.problem, preset("random"), (), seed=0))
    assert order.timeout_s == pytest.approx(0.02 / float(job.problem.price[order.row]))
    assert order.reserved_usd == pytest.approx(0.02)


def test_no_reservation_without_a_budget() -> None:
    order = ordered(decide(small_job().problem, preset("random"), (), seed=0))
    assert math.isinf(order.timeout_s)
    assert order.reserved_usd == 0.0


def test_open_trials_reserve_budget_and_exclude_their_rows() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=0.4))
    first = ordered(decide(job.problem, preset("sweep"), (), seed=0))
    second = decide(job.problem, preset("sweep"), (), (first,), seed=0)
    assert isinstance(second, Order)
    assert second.row != first.row
    assert first.reserved_usd + second.reserved_usd <= 0.4 * (1 + 1e-9)
    third = stopped(decide(job.problem.with_budget(first.reserved_usd), preset("sweep"), (), (first,), seed=0))
    assert third.kind is StopReason.BUDGET


def test_only_idle_warm_machines_skip_the_boot() -> None:
    billing = Billing(boot_s=100.0, warm=("vm",))
    job = small_job(billing=billing, budget=Budget(usd=9.0))
    row = job.problem.space.row({"vm": "c", "nodes": 1, "batch": 64})
    observations = job.finished([row])
    step = ordered(decide(job.problem, preset("sweep"), observations, seed=0))
    assert job.problem.space.point(step.row)["vm"] == "c"
    assert not step.boots
    assert step.reserved_usd == pytest.approx(step.timeout_s * float(job.problem.price[step.row]))
    busy = ordered(decide(job.problem, preset("sweep"), observations, (step,), seed=0))
    assert busy.boots
    lost = replace(observations[0], outcome=Outcome(End.FAILED, 1.0, 0.0, reason=FailureReason.PREEMPTED), target=None)
    assert ordered(decide(job.problem, preset("sweep"), (lost,), seed=0)).boots


def test_a_warm_start_with_a_minimum_charge_stays_within_the_budget() -> None:
    """At least 600 s are billed; skipping the boot does not reduce that minimum."""
    job = small_job(billing=Billing(minimum_s=600.0, boot_s=500.0, warm=("vm",)), budget=Budget(usd=1.0))
    row = job.problem.space.row({"vm": "c", "nodes": 1, "batch": 64})
    observations = job.finished([row])
    price = float(job.problem.price[row])
    spent = observations[0].outcome.charged_usd
    small_budget = job.problem.with_budget(spent + 590.0 * price)
    step = stopped(decide(small_budget, preset("sweep"), observations, seed=0))
    assert step.kind is StopReason.BUDGET


def test_a_budget_of_one_trial_is_used_up_by_it() -> None:
    job = small_job("runtime <= 30m", budget=Budget(trials=1))
    one = job.finished(job.order_of_runs[:1])
    assert decide(job.problem, preset("sweep"), one, seed=0) == Stopped(
        StopReason.TRIALS, "the only trial of the budget was used"
    )


def test_stop_reasons() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0, trials=3, wall_clock_s=3600.0))
    sweep = preset("sweep")
    three = job.finished(job.order_of_runs[:3])
    assert decide(job.problem, sweep, three, seed=0) == Stopped(
        StopReason.TRIALS, "all 3 trials of the budget were used"
    )
    assert decide(job.problem, sweep, three[:1], seed=0, elapsed_s=3600.0) == Stopped(
        StopReason.WALL_CLOCK, "the study's 1h of wall clock are over"
    )
    free = small_job("runtime <= 30m")
    everything = free.finished(free.order_of_runs)
    assert decide(free.problem, sweep, everything, seed=0) == Stopped(
        StopReason.EXHAUSTED, "every configuration has been run"
    )
    spent = sum(seen.outcome.charged_usd for seen in everything[:5])
    assert decide(free.problem.with_budget(spent), sweep, everything[:5], seed=0) == Stopped(
        StopReason.BUDGET, f"the $0 left of ${spent:.2f} buy no further run"
    )


def test_configurations_that_cannot_beat_the_incumbent_are_not_run() -> None:
    """At least ten hours are billed, so a machine with a higher price costs more than the incumbent at any speed."""
    job = small_job(billing=Billing(minimum_s=36_000.0))
    search = explore(job, preset("sweep"))
    assert [float(job.problem.price[row]) for row in search.rows] == [float(job.problem.price.min())] * 2
    assert search.stopped == Stopped(
        StopReason.CONVERGED, "no configuration left can beat the incumbent, whatever its speed"
    )


def test_a_model_policy_stops_when_no_configuration_is_affordable() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=3.0))
    observations = explore(job, preset("bo"), seed=0).observations[:6]
    spent = sum(seen.outcome.charged_usd for seen in observations)
    stop = stopped(decide(job.problem.with_budget(spent + 0.02), preset("bo"), observations, seed=0))
    assert stop == Stopped(StopReason.BUDGET, "no configuration is likely enough to finish within the $0.02 left")


TRACE = """
import sys; sys.path.insert(0, {tests!r})
from simulated_search import explore
from lynceus.policy import preset
from lynceus.problem import Budget
from lynceus.testing import small_job
job = small_job("runtime <= 30m", "accuracy >= 0.87", budget=Budget(usd=3.0))
for parallel in (1, 2):
    seen = explore(job, preset("lynceus-2020", 2), seed=5, parallel=parallel)
    print([(o.row, o.timeout_s, o.plan.score) for o in seen.orders])
"""


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    traces = [
        subprocess.run(
            [sys.executable, "-c", TRACE.format(tests=str(TESTS))],
            env={**os.environ, "LYNCEUS_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert traces[0] == traces[1]
    assert traces[0].count("[") == 2


# The design and the model of Ernest are deterministic, and so are the runs of PARIS' fingerprints.
@pytest.mark.parametrize("name", [name for name in SHORT if name not in ("ernest", "ernest-sizes", "paris")])
def test_the_random_seed_changes_the_search(name: str) -> None:
    """If a policy ignored its seed, an average over seeds would be a single run."""
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0))
    traces = {tuple(explore(job, preset(name, SHORT[name]), seed=seed).rows) for seed in range(4)}
    assert len(traces) > 1


def without_deadline(usd: float, billing: Billing | None = None) -> Problem:
    space = Space.build([Categorical("vm", ["a", "b", "c", "d"])], price="1.0 if vm == 'a' else 2.0")
    return Problem(space, budget=Budget(usd), billing=billing or Billing())


def test_a_run_without_a_deadline_reserves_its_share_of_the_slots() -> None:
    problem, policy = without_deadline(9.0), preset("sweep")
    alone = ordered(decide(problem, policy, (), seed=0))
    assert alone.reserved_usd == pytest.approx(9.0)
    pending: tuple[Order, ...] = ()
    for slots in (3, 2, 1):
        step = ordered(decide(problem, policy, (), pending, seed=0, slots=slots))
        assert step.reserved_usd == pytest.approx(3.0)
        assert step.timeout_s == pytest.approx(3.0 / float(problem.price[step.row]))
        pending = (*pending, step)
    assert sum(order.reserved_usd for order in pending) <= 9.0
    assert stopped(decide(problem, policy, (), pending, seed=0)).kind is StopReason.BUDGET
    with pytest.raises(ValueError, match="0 slots"):
        decide(problem, policy, (), seed=0, slots=0)


def test_a_share_below_the_boot_cost_falls_back_to_the_remaining_budget() -> None:
    problem = without_deadline(1.0, Billing(boot_s=1000.0))  # a boot costs 28 or 56 cents
    step = ordered(decide(problem, preset("sweep"), (), seed=0, slots=4))
    assert step.reserved_usd == pytest.approx(1.0)


def test_a_timeout_from_the_deadline_is_not_divided_by_the_slots() -> None:
    problem = replace(without_deadline(9.0), constraints=(Constraint("time", 3600.0),))
    policy = preset("sweep")
    first = ordered(decide(problem, policy, (), seed=0, slots=4))
    assert first == ordered(decide(problem, policy, (), seed=0)), "the deadline already limits the run"
