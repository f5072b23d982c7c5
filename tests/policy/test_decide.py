"""`decide` and `absorb`: pure, thrifty, and honest about facts, whatever the problem, the policy and the world."""

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

from jobs import Watched, explore, outcome_of
from lynceus.history import End, Order, Outcome, Reason, Told
from lynceus.policy import Because, Policy, Stopped, absorb, decide, preset
from lynceus.problem import Budget, Limit, Problem, Tariff
from lynceus.situation import Situation
from lynceus.space import Categorical, Space
from lynceus.testing import SmallJob, small_job
from strategies import READY, SHORT, jobs, policies

TESTS = Path(__file__).parents[1]


def ordered(step: Order | Stopped) -> Order:
    assert isinstance(step, Order), step
    return step


def stopped(step: Order | Stopped) -> Stopped:
    assert isinstance(step, Stopped), step
    return step


# Properties over random problems, policies and worlds --------------------------------------------------------------------


def some_failures(seed: int, share: int) -> dict[int, Reason]:
    """Every `share`-th trial fails, for reasons that take turns."""
    reasons = list(Reason)
    return (
        {number: reasons[(number // share + seed) % len(reasons)] for number in range(0, 400, share)} if share else {}
    )


worlds = st.tuples(st.integers(0, 4), st.sampled_from([0, 0, 2, 3, 5]))


@pytest.mark.parametrize("name", READY)
@settings(max_examples=25)
@given(data=st.data(), job=jobs(), parallel=st.integers(1, 3), world=worlds, repeats=st.sampled_from([1, 1, 2]))
def test_an_exploration_keeps_its_promises(
    name: str, data: st.DataObject, job: SmallJob, parallel: int, world: tuple[int, int], repeats: int
) -> None:
    policy = data.draw(policies(name))
    job = dataclasses.replace(job, problem=replace(job.problem, repeats=repeats))
    failures = some_failures(*world)
    watched = explore(job, policy, seed=3, parallel=parallel, fails=lambda row, number: failures.get(number), most=150)
    check_money(job, watched)
    check_rows(watched, repeats)
    check_facts(job, watched)
    check_limits(job, watched)
    assert watched.stopped is not None
    assert watched.stopped.reason


def check_money(job: SmallJob, watched: Watched) -> None:
    budget = job.problem.budget.usd
    assert watched.most_committed_usd <= budget * (1 + 1e-7) or math.isinf(budget)
    assert watched.spent_usd <= budget * (1 + 1e-7)
    for seen in watched.history:
        assert seen.outcome.charged_usd <= seen.order.reserved_usd * (1 + 1e-7) or math.isinf(budget)


def check_rows(watched: Watched, repeats: int) -> None:
    assert len(watched.orders) == len(watched.moments) == len(watched.history)
    for order, (settled, under_way) in zip(watched.orders, watched.moments, strict=True):
        before = [seen.outcome.reason for seen in watched.history[:settled] if seen.row == order.row]
        assert before.count(None) + under_way.count(order.row) < repeats
        assert not set(before) & {Reason.JOB, Reason.OOM, Reason.USER}, "a configuration at fault must not come again"


def check_facts(job: SmallJob, watched: Watched) -> None:
    for seen in watched.history:
        outcome, price = seen.outcome, float(job.problem.price[seen.row])
        fact = outcome_of(job, seen.order, outcome.reason)
        assert outcome == fact, "what happened must not be touched"
        charge = job.problem.tariff.charge(outcome.seconds, price, boots=seen.order.boots)
        assert outcome.charged_usd == pytest.approx(charge)
        if outcome.end is End.CAPPED:
            assert outcome.seconds == seen.order.cap_s
            assert seen.told is None or seen.told.seconds >= outcome.seconds
        if outcome.end is End.FINISHED:
            assert seen.told == Told(outcome.seconds, outcome.metrics)
        if outcome.end is End.FAILED:
            assert seen.told is None


def check_limits(job: SmallJob, watched: Watched) -> None:
    assert job.problem.budget.trials is None or len(watched.orders) <= job.problem.budget.trials
    assert [order.number for order in watched.orders] == list(range(len(watched.orders)))


@settings(max_examples=30)
@given(job=jobs(), policy=policies(), runs=st.integers(0, 12), open_trials=st.integers(0, 2))
def test_the_same_inputs_give_the_same_order_and_stay_as_they_are(
    job: SmallJob, policy: Policy, runs: int, open_trials: int
) -> None:
    history = job.finished(job.order_of_runs[:runs])
    pending: tuple[Order, ...] = ()
    for _ in range(open_trials):
        step = decide(job.problem, policy, history, pending, seed=11)
        if isinstance(step, Order):
            pending = (*pending, step)
    before = repr((history, pending))
    first = decide(job.problem, policy, history, pending, seed=11, elapsed_s=5.0)
    assert repr(first) == repr(decide(job.problem, policy, history, pending, seed=11, elapsed_s=5.0))
    assert repr((history, pending)) == before
    if isinstance(first, Order):
        outcome = outcome_of(job, first)
        seen = absorb(job.problem, policy, history, first, outcome)
        assert repr(seen) == repr(absorb(job.problem, policy, history, first, outcome))
        assert seen.outcome is outcome
        assert seen.order is first


# Failures ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SHORT))
@pytest.mark.parametrize("reason", list(Reason))
def test_a_policy_survives_a_first_run_that_fails(name: str, reason: Reason) -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=3.0))
    policy = preset(name, SHORT[name])
    watched = explore(job, policy, seed=1, fails=lambda row, number: reason if number == 0 else None)
    again = watched.rows[0] in watched.rows[1:]
    if reason in (Reason.JOB, Reason.OOM, Reason.USER):
        assert not again, "a configuration at fault must not come again"
    elif name in ("sweep", "random", "lynceus-2020"):
        assert again, "a machine's fault is no reason to give the configuration up"
    assert len(watched.orders) > 2


@pytest.mark.parametrize("name", list(SHORT))
def test_a_policy_survives_when_every_run_fails(name: str) -> None:
    job = small_job("runtime <= 30m", "accuracy >= 0.8")
    watched = explore(job, preset(name, SHORT[name]), fails=lambda row, number: Reason.JOB)
    assert sorted(watched.rows) == list(range(len(job.problem.space)))
    assert watched.stopped is not None
    assert watched.stopped.because is Because.EXHAUSTED


@pytest.mark.parametrize("name", list(SHORT))
def test_a_policy_survives_when_no_run_reports_its_metric(name: str) -> None:
    job = small_job("runtime <= 30m", "memory <= 8", budget=Budget(usd=3.0))
    watched = explore(job, preset(name, SHORT[name]))
    assert len(watched.orders) > 1
    assert math.isnan(Situation.present(job.problem, watched.history).best[0]), "what was not reported keeps no limit"


# Orders --------------------------------------------------------------------------------------------------------------------


def test_the_cap_is_the_least_of_incumbent_deadline_and_money() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=5.0))
    history = job.finished(job.order_of_runs[:8])
    spent = sum(seen.outcome.charged_usd for seen in history)
    best = float(Situation.present(job.problem, history).best[0])
    order = ordered(decide(job.problem, preset("sweep"), history, seed=0))
    price = float(job.problem.price[order.row])
    assert order.cap_s == pytest.approx(min(best / price, 1800.0, (5.0 - spent) / price))
    assert order.reserved_usd == pytest.approx(order.cap_s * price)
    poor = job.problem.with_budget(spent + 0.01)
    poor_order = ordered(decide(poor, preset("sweep"), history, seed=0))
    assert poor_order.cap_s == pytest.approx(0.01 / float(poor.price[poor_order.row]))


def test_without_a_cap_the_budget_still_stops_a_run() -> None:
    job = small_job(budget=Budget(usd=0.02))
    order = ordered(decide(job.problem, preset("random"), (), seed=0))
    assert order.cap_s == pytest.approx(0.02 / float(job.problem.price[order.row]))
    assert order.reserved_usd == pytest.approx(0.02)


def test_without_a_budget_nothing_is_reserved() -> None:
    order = ordered(decide(small_job().problem, preset("random"), (), seed=0))
    assert math.isinf(order.cap_s)
    assert order.reserved_usd == 0.0


def test_open_trials_reserve_their_money_and_close_their_rows() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=0.4))
    first = ordered(decide(job.problem, preset("sweep"), (), seed=0))
    second = decide(job.problem, preset("sweep"), (), (first,), seed=0)
    assert isinstance(second, Order)
    assert second.row != first.row
    assert first.reserved_usd + second.reserved_usd <= 0.4 * (1 + 1e-9)
    third = stopped(decide(job.problem.with_budget(first.reserved_usd), preset("sweep"), (), (first,), seed=0))
    assert third.because is Because.BUDGET


def test_warm_machines_are_not_booted_again_and_busy_ones_are_not_warm() -> None:
    tariff = Tariff(boot_s=100.0, warm=("vm",))
    job = small_job(tariff=tariff, budget=Budget(usd=9.0))
    row = job.problem.space.row({"vm": "c", "nodes": 1, "batch": 64})
    history = job.finished([row])
    step = ordered(decide(job.problem, preset("sweep"), history, seed=0))
    assert job.problem.space.point(step.row)["vm"] == "c"
    assert not step.boots
    assert step.reserved_usd == pytest.approx(step.cap_s * float(job.problem.price[step.row]))
    busy = ordered(decide(job.problem, preset("sweep"), history, (step,), seed=0))
    assert busy.boots
    lost = replace(history[0], outcome=Outcome(End.FAILED, 1.0, 0.0, reason=Reason.PREEMPTED), told=None)
    assert ordered(decide(job.problem, preset("sweep"), (lost,), seed=0)).boots


def test_a_warm_start_cannot_overdraw_a_budget_through_the_minimum() -> None:
    """60 s are billed at least; a boot that is saved makes them no cheaper."""
    job = small_job(tariff=Tariff(minimum_s=600.0, boot_s=500.0, warm=("vm",)), budget=Budget(usd=1.0))
    row = job.problem.space.row({"vm": "c", "nodes": 1, "batch": 64})
    history = job.finished([row])
    price = float(job.problem.price[row])
    spent = history[0].outcome.charged_usd
    poor = job.problem.with_budget(spent + 590.0 * price)
    step = stopped(decide(poor, preset("sweep"), history, seed=0))
    assert step.because is Because.BUDGET


# Stops ---------------------------------------------------------------------------------------------------------------------


def test_the_reasons_of_stops() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0, trials=3, wall_clock_s=3600.0))
    sweep = preset("sweep")
    three = job.finished(job.order_of_runs[:3])
    assert decide(job.problem, sweep, three, seed=0) == Stopped(Because.TRIALS, "all 3 trials of the budget were used")
    assert decide(job.problem, sweep, three[:1], seed=0, elapsed_s=3600.0) == Stopped(
        Because.WALL_CLOCK, "the study's 1h of wall clock are over"
    )
    free = small_job("runtime <= 30m")
    everything = free.finished(free.order_of_runs)
    assert decide(free.problem, sweep, everything, seed=0) == Stopped(
        Because.EXHAUSTED, "every configuration has been run"
    )
    spent = sum(seen.outcome.charged_usd for seen in everything[:5])
    assert decide(free.problem.with_budget(spent), sweep, everything[:5], seed=0) == Stopped(
        Because.BUDGET, f"the $0 left of ${spent:.2f} buy no further run"
    )


def test_nothing_is_run_that_could_not_win() -> None:
    """Ten hours are billed at least, so a dearer machine costs more than the incumbent however fast it is."""
    job = small_job(tariff=Tariff(minimum_s=36_000.0))
    watched = explore(job, preset("sweep"))
    assert [float(job.problem.price[row]) for row in watched.rows] == [float(job.problem.price.min())] * 2
    assert watched.stopped == Stopped(
        Because.CONVERGED, "no configuration left can beat the incumbent, whatever its speed"
    )


def test_a_plan_that_finds_nothing_affordable_says_so() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=3.0))
    history = explore(job, preset("bo"), seed=0).history[:6]
    spent = sum(seen.outcome.charged_usd for seen in history)
    end = stopped(decide(job.problem.with_budget(spent + 0.02), preset("bo"), history, seed=0))
    assert end == Stopped(Because.BUDGET, "no configuration is likely enough to finish within the $0.02 left")


# Threads -------------------------------------------------------------------------------------------------------------------

TRACE = """
import sys; sys.path.insert(0, {tests!r})
from jobs import explore
from lynceus.policy import preset
from lynceus.problem import Budget
from lynceus.testing import small_job
job = small_job("runtime <= 30m", "accuracy >= 0.87", budget=Budget(usd=3.0))
for parallel in (1, 2):
    seen = explore(job, preset("lynceus-2020", 2), seed=5, parallel=parallel)
    print([(o.row, o.cap_s, o.plan.score) for o in seen.orders])
"""


def test_threads_change_speed_and_never_results() -> None:
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


@pytest.mark.parametrize("name", [name for name in SHORT if name != "ernest"])  # its design and its model know no luck
def test_seeds_matter(name: str) -> None:
    """A policy that ignored its seed would make every average over seeds a single run."""
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0))
    traces = {tuple(explore(job, preset(name, SHORT[name]), seed=seed).rows) for seed in range(4)}
    assert len(traces) > 1


# Several slots ------------------------------------------------------------------------------------------------------------


def uncapped(usd: float, tariff: Tariff | None = None) -> Problem:
    space = Space.build([Categorical("vm", ["a", "b", "c", "d"])], price="1.0 if vm == 'a' else 2.0")
    return Problem(space, budget=Budget(usd), tariff=tariff or Tariff())


def test_of_several_slots_a_run_without_a_cap_takes_its_fair_share() -> None:
    problem, policy = uncapped(9.0), preset("sweep")
    alone = ordered(decide(problem, policy, (), seed=0))
    assert alone.reserved_usd == pytest.approx(9.0)
    pending: tuple[Order, ...] = ()
    for slots in (3, 2, 1):
        step = ordered(decide(problem, policy, (), pending, seed=0, slots=slots))
        assert step.reserved_usd == pytest.approx(3.0)
        assert step.cap_s == pytest.approx(3.0 / float(problem.price[step.row]))
        pending = (*pending, step)
    assert sum(order.reserved_usd for order in pending) <= 9.0
    assert stopped(decide(problem, policy, (), pending, seed=0)).because is Because.BUDGET
    with pytest.raises(ValueError, match="0 slots"):
        decide(problem, policy, (), seed=0, slots=0)


def test_a_share_that_pays_no_start_gives_way_to_all_that_is_left() -> None:
    problem = uncapped(1.0, Tariff(boot_s=1000.0))  # a boot costs 28 or 56 cents
    step = ordered(decide(problem, preset("sweep"), (), seed=0, slots=4))
    assert step.reserved_usd == pytest.approx(1.0)


def test_a_cap_that_the_policy_wants_is_not_shared() -> None:
    problem = replace(uncapped(9.0), limits=(Limit("time", 3600.0),))
    policy = preset("sweep")
    first = ordered(decide(problem, policy, (), seed=0, slots=4))
    assert first == ordered(decide(problem, policy, (), seed=0)), "the deadline caps it already"
