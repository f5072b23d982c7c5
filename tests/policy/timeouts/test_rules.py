"""Timeout rules: min(C*/U, Tmax), checks at intervals, slack, and which runs they stop."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.models.state import State
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.rules import FastestTimeout, IncumbentTimeout, NoTimeout
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.billing import Billing
from lynceus.testing.job import SmallJob, small_job
from lynceus.testing.timeouts import check_timeout
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget
from strategies import jobs


def after(job: SmallJob, runs: int = 8) -> State:
    return State.present(job.problem, job.finished(job.order_of_runs[:runs]))


def plan(row: int, *, stoppable: bool = True) -> Plan:
    return Plan(row, why="tested", stoppable=stoppable)


@pytest.mark.parametrize("name", list(TIMEOUTS))
def test_every_timeout_meets_the_contract(name: str) -> None:
    check_timeout(TIMEOUTS[name])
    check_timeout(Timeout(IncumbentTimeout(slack=1.5, every_s=30.0, first_runs_too=True), TIMEOUTS[name].censored))


@pytest.mark.parametrize("row", [0, 9, 23])
def test_a_run_is_stopped_when_it_costs_as_much_as_the_incumbent_or_is_late(row: int) -> None:
    job = small_job("runtime <= 30m")
    state = after(job)
    price = float(job.problem.price[row])
    feasible = [s for s in job.order_of_runs[:8] if job.measured.seconds[s] <= 1800]
    best = min(job.problem.price[s] * job.measured.seconds[s] for s in feasible)
    assert IncumbentTimeout()(state, plan(row)) == pytest.approx(min(best / price, 1800.0))
    assert NoTimeout()(state, plan(row)) == math.inf


def test_without_an_incumbent_only_the_deadline_stops() -> None:
    assert IncumbentTimeout()(after(small_job("runtime <= 30m"), 0), plan(3)) == 1800.0
    assert IncumbentTimeout()(after(small_job(), 0), plan(3)) == math.inf


@pytest.mark.parametrize("billing", [Billing(), Billing(granularity_s=60, minimum_s=60, boot_s=30, fee_usd=0.001)])
def test_slack_without_an_incumbent_uses_the_deadline(billing: Billing) -> None:
    job = small_job("runtime <= 30m", billing=billing)
    assert IncumbentTimeout(slack=2.0)(after(job, 0), plan(3)) == 1800.0


def test_slack_stretches_the_incumbent_and_never_the_deadline() -> None:
    job = small_job("runtime <= 30m")
    state = after(job)
    best = float(state.best[0])
    for row in range(24):
        price = float(job.problem.price[row])
        assert IncumbentTimeout(slack=1.5)(state, plan(row)) == pytest.approx(min(1.5 * best / price, 1800.0))


def test_ituneds_rule_is_twice_the_fastest_run_whatever_it_cost() -> None:
    job = small_job("runtime <= 30m")
    rows = job.order_of_runs[:8]
    fastest = float(job.measured.seconds[list(rows)].min())
    assert FastestTimeout()(after(job), plan(0)) == pytest.approx(2 * fastest)
    assert FastestTimeout(slack=3.0)(after(job), plan(23)) == pytest.approx(3 * fastest)
    assert FastestTimeout()(after(job, 0), plan(0)) == math.inf, "nothing to compare with"
    assert FastestTimeout()(after(job), plan(0, stoppable=False)) == math.inf
    assert FastestTimeout(first_runs_too=True)(after(job), plan(0, stoppable=False)) == pytest.approx(2 * fastest)


def test_a_stopped_run_is_no_fastest_run() -> None:
    job = small_job()
    done = job.observation(1, 5)
    stopped = replace(done, outcome=replace(done.outcome, end=End.TIMEOUT, seconds=1.0))
    state = State.present(replace(job.problem, repeats=2), (stopped, done))
    assert FastestTimeout()(state, plan(0)) == pytest.approx(2 * float(job.measured.seconds[5]))


def test_other_objectives_are_compared_by_their_value() -> None:
    time = small_job(objective="time")
    assert IncumbentTimeout()(after(time), plan(0)) == pytest.approx(
        float(time.measured.seconds[list(time.order_of_runs[:8])].min())
    )
    assert IncumbentTimeout(slack=2.0)(after(time), plan(0)) == pytest.approx(
        2 * float(time.measured.seconds[list(time.order_of_runs[:8])].min())
    )
    accuracy = small_job("runtime <= 30m", objective="maximize accuracy")
    assert IncumbentTimeout()(after(accuracy), plan(0)) == 1800.0, "a slow run may still be the most accurate"
    assert IncumbentTimeout(slack=2.0)(after(accuracy), plan(0)) == 1800.0


def test_a_constraint_on_cost_gives_a_timeout_by_price() -> None:
    job = small_job("cost <= $0.10")
    for row in (0, 7, 23):
        assert IncumbentTimeout()(after(job, 0), plan(row)) == pytest.approx(0.10 / float(job.problem.price[row]))


def test_runs_of_the_design_finish_by_default() -> None:
    state = after(small_job("runtime <= 30m"))
    design = plan(5, stoppable=False)
    assert IncumbentTimeout()(state, design) == math.inf
    assert IncumbentTimeout(first_runs_too=True)(state, design) == IncumbentTimeout()(state, plan(5))


@given(jobs(), st.integers(0, 23), st.sampled_from([1.0, 30.0, 60.0]), st.integers(0, 8))
def test_with_intervals_a_run_stops_at_the_next_check(job: SmallJob, row: int, every_s: float, runs: int) -> None:
    state = after(job, runs)
    exact, ticked = IncumbentTimeout()(state, plan(row)), IncumbentTimeout(every_s=every_s)(state, plan(row))
    assert exact >= 0
    if math.isfinite(exact):
        assert exact * (1 - 1e-9) <= ticked < exact + every_s
        assert ticked / every_s == pytest.approx(round(ticked / every_s))
    else:
        assert ticked == exact


@given(jobs(), st.integers(1, 8))
def test_a_stopped_run_costs_no_more_than_the_incumbent(job: SmallJob, runs: int) -> None:
    state = after(job, runs)
    if job.problem.kind != "cost" or np.isnan(state.best[0]):
        return
    for row in range(24):
        timeout_s = IncumbentTimeout()(state, plan(row))
        if timeout_s > 0:
            assert job.problem.cost(row, timeout_s) <= float(state.best[0]) * (1 + 1e-6)


def test_only_the_very_first_run_may_take_longer_than_the_deadline() -> None:
    job = small_job("runtime <= 30m")
    rule, plain = IncumbentTimeout(first_runs_too=True, overtime=1.25), IncumbentTimeout(first_runs_too=True)
    row = job.order_of_runs[0]
    first = State.present(job.problem, ())
    assert rule(first, plan(row)) == pytest.approx(1.25 * plain(first, plan(row)))
    later = after(job, 1)
    for other in np.flatnonzero(later.open).tolist():
        assert rule(later, plan(other)) == plain(later, plan(other))
    with pytest.raises(ValueError, match="give 1 or more"):
        IncumbentTimeout(overtime=0.5)


def test_a_suggestion_of_earlier_jobs_does_not_take_the_place_of_the_first_run() -> None:
    """It must keep the deadline, as it promises; the first run after it may be late, unless the suggestion has kept the limits."""
    job = small_job("runtime <= 30m")
    rule = IncumbentTimeout(first_runs_too=True, overtime=1.25)
    suggested = Plan(0, "suggested", purpose=Purpose.HISTORY)
    assert rule(State.present(job.problem, ()), suggested) == 30 * 60
    for end, seconds, allowed_s in ((End.TIMEOUT, 1800.0, 1.25 * 1800), (End.FINISHED, 600.0, 1800.0)):
        order, target = Order(0, 0, 1800.0, 1.0, suggested), TrainingTarget(seconds, censored=end is End.TIMEOUT)
        later = State.present(job.problem, (Observation(order, Outcome(end, seconds, 0.1), target),))
        timeout_s = rule(later, plan(1))
        assert timeout_s == allowed_s if end is End.TIMEOUT else timeout_s <= allowed_s


def test_the_first_run_goes_on_beyond_the_deadline_only_where_that_is_cheap_beside_an_average_run() -> None:
    job = small_job("runtime <= 30m")
    price, first = job.problem.price, State.present(job.problem, ())
    average = np.exp(np.log(price).mean())
    rule = IncumbentTimeout(first_runs_too=True, overtime=2.0, overtime_share=0.5)
    for row in range(len(price)):
        timeout_s = rule(first, plan(row))
        # Whatever the run costs beyond the deadline, it is at most half of what an average one costs until then.
        assert 30 * 60 <= timeout_s <= 2 * 30 * 60
        assert timeout_s == 30 * 60 or timeout_s * price[row] <= 0.5 * average * 30 * 60 * (1 + 1e-9)
    assert rule(first, plan(int(price.argmax()))) == 30 * 60
    with pytest.raises(ValueError, match="give 0 or more"):
        IncumbentTimeout(overtime_share=-1.0)
