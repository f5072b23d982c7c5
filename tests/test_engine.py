"""The loop over a measured table in pretended time."""

from collections.abc import Mapping

import numpy as np
import pytest

from lynceus.engine import explore
from lynceus.executor.executor import Request
from lynceus.executor.table import Measurements, PretendedClock, TableExecutor
from lynceus.history import End, Observation, Order
from lynceus.policy import Because, preset
from lynceus.problem import Budget, Problem, Tariff
from lynceus.study import Study
from lynceus.testing import SmallJob, small_job
from strategies import READY, SHORT


def replayed(job: SmallJob, policy: str, *, seed: int = 0, parallel: int = 1) -> tuple[Study, PretendedClock]:
    clock = PretendedClock()
    study = Study(job.problem, preset(policy, SHORT[policy]), seed=seed, clock=clock)
    explore(study, TableExecutor(job.problem, job.measured, clock), clock, parallel=parallel)
    return study, clock


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("policy", READY)
def test_every_policy_replays_within_its_budget(policy: str, parallel: int) -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=4.0))
    study, _ = replayed(job, policy, parallel=parallel)
    assert study.spent_usd <= 4.0 * (1 + 1e-9)
    assert not study.pending
    assert study.stopped is not None
    best = study.recommend()
    assert best is not None
    assert best.seconds <= 1800.0
    again, _ = replayed(job, policy, parallel=parallel)
    assert [seen.row for seen in again.history] == [seen.row for seen in study.history]


def test_runs_at_the_same_time_save_time() -> None:
    job = small_job("runtime <= 30m", budget=Budget(trials=9))
    _, alone = replayed(job, "random")
    _, together = replayed(job, "random", parallel=3)
    assert together.now() < 0.6 * alone.now()


def test_the_wall_clock_is_the_pretended_one() -> None:
    job = small_job(budget=Budget(wall_clock_s=3600.0))
    study, clock = replayed(job, "random")
    assert study.stopped is not None
    assert study.stopped.because is Because.WALL_CLOCK
    assert clock.now() >= 3600.0
    seconds = [seen.outcome.seconds for seen in study.history]
    assert sum(seconds[:-1]) < 3600.0 <= sum(seconds)


def test_callers_hear_of_orders_and_of_what_became_of_them() -> None:
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0))
    clock = PretendedClock()
    study = Study(job.problem, preset("sweep"), clock=clock)
    ordered: list[Order] = []
    settled: list[Observation] = []
    explore(
        study, TableExecutor(job.problem, job.measured, clock), clock, ordered=ordered.append, settled=settled.append
    )
    assert [order.number for order in ordered] == list(range(len(study.history)))
    assert tuple(settled) == study.history


def test_a_policy_never_sees_rows_that_were_not_paid() -> None:
    """Another truth in rows that were never run changes nothing."""
    job = small_job("runtime <= 30m", budget=Budget(usd=2.0))
    study, _ = replayed(job, "lynceus-2020")
    ran = {seen.row for seen in study.history}
    assert len(ran) < 20
    seconds = job.measured.seconds.copy()
    accuracy = job.measured.metrics["accuracy"].copy()
    others = [row for row in range(24) if row not in ran]
    seconds[others], accuracy[others] = 1e9, -1e9
    spoilt = SmallJob(job.problem, Measurements(seconds, {"accuracy": accuracy}, job.measured.progress))
    assert replayed(spoilt, "lynceus-2020")[0].history == study.history


# The executor --------------------------------------------------------------------------------------------------------------

BILLED = Tariff(granularity_s=60.0, boot_s=45.0)


def table(
    problem: Problem, seconds: list[float], metrics: Mapping[str, list[float]] | None = None
) -> tuple[TableExecutor, PretendedClock]:
    clock = PretendedClock()
    columns = {name: np.array(values) for name, values in (metrics or {}).items()}
    return TableExecutor(problem, Measurements(np.array(seconds), columns, ((0.1, 0.2, 0.3),) * 24), clock), clock


def request(row: int, cap_s: float, *, boots: bool = True, number: int = 0) -> Request:
    return Request("study", number, row, {}, cap_s, boots)


def test_a_run_ends_after_boot_and_time_and_reports_what_is_known() -> None:
    job = small_job(tariff=BILLED)
    executor, clock = table(job.problem, [200.0] * 24, {"accuracy": [0.9] * 23 + [float("nan")]})
    ticket = executor.launch(request(0, 1000.0))
    assert executor.collect(ticket) is None
    clock.sleep(0.1)
    assert clock.now() == 245.0
    outcome = executor.collect(ticket)
    assert outcome is not None
    assert (outcome.end, outcome.seconds, outcome.metrics) == (End.FINISHED, 200.0, {"accuracy": 0.9})
    assert outcome.charged_usd == pytest.approx(300.0 * float(job.problem.price[0]))
    assert outcome.trace == ((30.0, 0.1), (60.0, 0.2), (90.0, 0.3))
    unknown = executor.launch(request(23, 1000.0, number=1))
    clock.sleep(0.1)
    last = executor.collect(unknown)
    assert last is not None
    assert last.metrics == {}


def test_a_capped_run_is_charged_its_cap_by_the_billing_rule() -> None:
    job = small_job(tariff=BILLED)
    executor, clock = table(job.problem, [200.0] * 24)
    ticket = executor.launch(request(0, 70.0, boots=False))
    clock.sleep(0.1)
    outcome = executor.collect(ticket)
    assert outcome is not None
    assert (outcome.end, outcome.seconds, outcome.oracle_s) == (End.CAPPED, 70.0, 200.0)
    assert outcome.charged_usd == pytest.approx(120.0 * float(job.problem.price[0]))
    assert outcome.trace == ((30.0, 0.1), (60.0, 0.2))
    assert outcome.metrics == {}


def test_a_cancelled_run_is_billed_for_what_ran() -> None:
    job = small_job(tariff=BILLED)
    executor, clock = table(job.problem, [200.0] * 24)
    ticket = executor.launch(request(0, 1000.0))
    clock.expect(100.0)
    clock.sleep(0.1)
    executor.cancel(ticket)
    outcome = executor.collect(ticket)
    assert outcome is not None
    assert (outcome.end, outcome.seconds) == (End.CAPPED, 55.0)
    assert outcome.charged_usd == pytest.approx(120.0 * float(job.problem.price[0]))
    assert outcome.trace == ((30.0, 0.1),)


def test_the_clock_jumps_to_the_next_end_or_walks() -> None:
    clock = PretendedClock()
    clock.sleep(2.0)
    assert clock.now() == 2.0
    clock.expect(10.0)
    clock.expect(5.0)
    clock.sleep(0.1)
    assert clock.now() == 5.0
    clock.sleep(0.1)
    assert clock.now() == 10.0
    clock.sleep(0.5)
    assert clock.now() == 10.5
