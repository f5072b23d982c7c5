"""What every timeout promises."""

from __future__ import annotations

import copy
import math

from lynceus.history import End, Expected, Order, Outcome, Plan
from lynceus.problem import Tariff
from lynceus.situation import Situation
from lynceus.testing.job import SmallJob, small_job
from lynceus.testing.unchanged import fingerprint
from lynceus.timeout import Timeout


def check_timeout(timeout: Timeout) -> None:
    """Caps are times, and what is told of a stopped run is never less than what ran (AssertionError if not)."""
    assert hash(timeout) == hash(copy.copy(timeout)), "a part is a frozen value with a hash"
    for tariff in (Tariff(), Tariff(granularity_s=60, minimum_s=60, boot_s=30, fee_usd=0.001)):
        for goal in ("cost", "time", "maximize accuracy"):
            job = small_job("runtime <= 40m", goal=goal, tariff=tariff)
            for runs in (0, 1, 8):
                _check(timeout, job, runs)


def _check(timeout: Timeout, job: SmallJob, runs: int) -> None:
    problem = job.problem
    situation = Situation.present(problem, job.finished(job.order_of_runs[:runs]))
    before = fingerprint(situation)
    for row in job.order_of_runs[8:12]:
        full = float(job.measured.seconds[row])
        for expected in (
            None,
            Expected("cost", (0.2, 0.9), (0.05, 0.01)),
            Expected("log time", (7.0, 0.9), (0.5, 0.0)),
        ):
            plan = Plan(row, why="checked", expected=expected)
            cap_s = timeout.cap(situation, plan)
            assert cap_s >= 0, f"a cap of {cap_s} seconds is no time"
            ran = min(cap_s, full / 2)
            order = Order(runs, row, cap_s, 1.0, plan)
            outcome = Outcome(
                End.CAPPED, ran, problem.cost(row, ran), trace=job.measured.trace(row, ran), oracle_s=full
            )
            told = timeout.fill(problem, order, outcome, situation)
            if told is not None:
                assert math.isfinite(told.seconds), f"told {told.seconds} seconds"
                assert told.seconds >= ran * (1 - 1e-12), f"told {told.seconds} s of a run that took {ran} s and more"
                assert not told.censored or told.bound_s == ran, "the bound of a censored run is what ran"
    assert fingerprint(situation) == before, "a timeout leaves the situation as it is"
