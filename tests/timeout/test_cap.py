"""Caps: min(C*/U, Tmax), ticks, slack, and which runs they bind."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.history import Plan
from lynceus.policy import TIMEOUTS
from lynceus.problem import Tariff
from lynceus.situation import Situation
from lynceus.testing import SmallJob, check_timeout, small_job
from lynceus.timeout import IncumbentCap, NoCap, Timeout
from strategies import jobs


def after(job: SmallJob, runs: int = 8) -> Situation:
    return Situation.present(job.problem, job.finished(job.order_of_runs[:runs]))


def plan(row: int, *, stoppable: bool = True) -> Plan:
    return Plan(row, why="tested", stoppable=stoppable)


@pytest.mark.parametrize("name", list(TIMEOUTS))
def test_every_timeout_keeps_the_contract(name: str) -> None:
    check_timeout(TIMEOUTS[name])
    check_timeout(Timeout(IncumbentCap(slack=1.5, every_s=30.0, first_runs_too=True), TIMEOUTS[name].fill))


@pytest.mark.parametrize("row", [0, 9, 23])
def test_a_run_is_stopped_when_it_costs_as_much_as_the_incumbent_or_is_late(row: int) -> None:
    job = small_job("runtime <= 30m")
    situation = after(job)
    price = float(job.problem.price[row])
    kept = [s for s in job.order_of_runs[:8] if job.measured.seconds[s] <= 1800]
    best = min(job.problem.price[s] * job.measured.seconds[s] for s in kept)
    assert IncumbentCap()(situation, plan(row)) == pytest.approx(min(best / price, 1800.0))
    assert NoCap()(situation, plan(row)) == math.inf


def test_without_an_incumbent_only_the_deadline_stops() -> None:
    assert IncumbentCap()(after(small_job("runtime <= 30m"), 0), plan(3)) == 1800.0
    assert IncumbentCap()(after(small_job(), 0), plan(3)) == math.inf
    assert IncumbentCap(measure="time", slack=2.0)(after(small_job("runtime <= 30m"), 0), plan(3)) == 1800.0


@pytest.mark.parametrize("tariff", [Tariff(), Tariff(granularity_s=60, minimum_s=60, boot_s=30, fee_usd=0.001)])
def test_slack_without_an_incumbent_does_not_stop_at_once(tariff: Tariff) -> None:
    job = small_job("runtime <= 30m", tariff=tariff)
    assert IncumbentCap(slack=2.0)(after(job, 0), plan(3)) == 1800.0


def test_slack_stretches_the_incumbent_and_never_the_deadline() -> None:
    job = small_job("runtime <= 30m")
    situation = after(job)
    best = float(situation.best[0])
    for row in range(24):
        price = float(job.problem.price[row])
        assert IncumbentCap(slack=1.5)(situation, plan(row)) == pytest.approx(min(1.5 * best / price, 1800.0))


def test_itunes_rule_is_twice_the_incumbents_time() -> None:
    job = small_job()
    situation = after(job)
    rows = job.order_of_runs[:8]
    best = min(rows, key=lambda row: job.problem.price[row] * job.measured.seconds[row])
    cap = IncumbentCap(slack=2.0, measure="time")(situation, plan(0))
    assert cap == pytest.approx(2 * float(job.measured.seconds[best]))


def test_the_incumbents_time_is_that_of_the_run_that_won() -> None:
    """Where a row ran twice, its late run is no incumbent."""
    job = small_job("runtime <= 30m")
    fast = int(job.measured.seconds.argmin())
    good = job.observation(1, fast)
    late = replace(good, outcome=replace(good.outcome, seconds=9000.0))
    problem = replace(job.problem, repeats=2)
    cap = IncumbentCap(slack=1.0, measure="time")(Situation.present(problem, (late, good)), plan(0))
    assert cap == pytest.approx(float(job.measured.seconds[fast]))


def test_for_other_goals_the_goal_is_what_is_beaten() -> None:
    time = small_job(goal="time")
    assert IncumbentCap()(after(time), plan(0)) == pytest.approx(
        float(time.measured.seconds[list(time.order_of_runs[:8])].min())
    )
    assert IncumbentCap(slack=2.0)(after(time), plan(0)) == pytest.approx(
        2 * float(time.measured.seconds[list(time.order_of_runs[:8])].min())
    )
    accuracy = small_job("runtime <= 30m", goal="maximize accuracy")
    assert IncumbentCap()(after(accuracy), plan(0)) == 1800.0, "a slow run may still be the most accurate"
    assert IncumbentCap(slack=2.0)(after(accuracy), plan(0)) == 1800.0


def test_a_limit_on_cost_caps_by_price() -> None:
    job = small_job("cost <= $0.10")
    for row in (0, 7, 23):
        assert IncumbentCap()(after(job, 0), plan(row)) == pytest.approx(0.10 / float(job.problem.price[row]))


def test_first_runs_finish_unless_asked_otherwise() -> None:
    situation = after(small_job("runtime <= 30m"))
    design = plan(5, stoppable=False)
    assert IncumbentCap()(situation, design) == math.inf
    assert IncumbentCap(first_runs_too=True)(situation, design) == IncumbentCap()(situation, plan(5))


@given(jobs(), st.integers(0, 23), st.sampled_from([1.0, 30.0, 60.0]), st.integers(0, 8))
def test_a_watch_that_ticks_stops_at_the_first_tick_after(job: SmallJob, row: int, every_s: float, runs: int) -> None:
    situation = after(job, runs)
    exact, ticked = IncumbentCap()(situation, plan(row)), IncumbentCap(every_s=every_s)(situation, plan(row))
    assert exact >= 0
    if math.isfinite(exact):
        assert exact * (1 - 1e-9) <= ticked < exact + every_s
        assert ticked / every_s == pytest.approx(round(ticked / every_s))
    else:
        assert ticked == exact


@given(jobs(), st.integers(1, 8))
def test_a_run_stopped_by_its_cap_costs_no_more_than_the_incumbent(job: SmallJob, runs: int) -> None:
    situation = after(job, runs)
    if job.problem.kind != "cost" or np.isnan(situation.best[0]):
        return
    for row in range(24):
        cap = IncumbentCap()(situation, plan(row))
        if cap > 0:
            assert job.problem.cost(row, cap) <= float(situation.best[0]) * (1 + 1e-6)
