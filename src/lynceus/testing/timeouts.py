"""The contract of timeouts."""

from __future__ import annotations

import copy
import math

from lynceus.models.state import State
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.billing import Billing
from lynceus.testing.immutability import fingerprint
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, Outcome


def check_timeout(timeout: Timeout) -> None:
    """Check that timeouts are times, and that training targets are never shorter than what ran; raises AssertionError."""
    assert hash(timeout) == hash(copy.copy(timeout)), "a part must be a frozen value with a hash"
    for billing in (Billing(), Billing(granularity_s=60, minimum_s=60, boot_s=30, fee_usd=0.001)):
        for objective in ("cost", "time", "maximize accuracy"):
            job = small_job("runtime <= 40m", objective=objective, billing=billing)
            for runs in (0, 1, 8):
                _check(timeout, job, runs)


def _check(timeout: Timeout, job: SmallJob, runs: int) -> None:
    problem = job.problem
    state = State.present(problem, job.finished(job.order_of_runs[:runs]))
    before = fingerprint(state)
    for row in job.order_of_runs[8:12]:
        full = float(job.measured.seconds[row])
        for expected in (
            None,
            Expected("cost", (0.2, 0.9), (0.05, 0.01)),
            Expected("log time", (7.0, 0.9), (0.5, 0.0)),
        ):
            plan = Plan(row, why="checked", expected=expected)
            timeout_s = timeout.rule(state, plan)
            assert timeout_s >= 0, f"a timeout of {timeout_s} seconds is negative"
            ran = min(timeout_s, full / 2)
            order = Order(runs, row, timeout_s, 1.0, plan)
            outcome = Outcome(
                End.TIMEOUT, ran, problem.cost(row, ran), trace=job.measured.trace(row, ran), oracle_s=full
            )
            target = timeout.censored(problem, order, outcome, state)
            if target is not None:
                assert math.isfinite(target.seconds), f"the training target is {target.seconds} seconds"
                assert target.seconds >= ran * (1 - 1e-12), (
                    f"the training target is {target.seconds} s, but the run took at least {ran} s"
                )
                assert not target.censored or target.bound_s == ran, "the bound of a censored run must be what ran"
    assert fingerprint(state) == before, "a timeout must not change the state"
