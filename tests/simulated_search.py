"""Searches in simulated time, with everything that happened at each moment."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from deciding import decide
from lynceus.policy.next_step import observe
from lynceus.policy.policy import Policy
from lynceus.testing.job import SmallJob
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, FailureReason, Observation, Observations, Outcome
from lynceus.trial.stop import Stopped

Fails = Callable[[int, int], FailureReason | None]
"""(row, number of the trial) → why it fails; None: it runs."""


@dataclass
class Watched:
    """What happened in a search."""

    observations: Observations = ()
    orders: list[Order] = field(default_factory=list)
    stopped: Stopped | None = None
    most_committed_usd: float = 0.0
    """Largest sum of charged and reserved dollars at any time."""
    moments: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """When each order was made: (settled runs, running rows)."""

    @property
    def rows(self) -> list[int]:
        return [order.row for order in self.orders]

    @property
    def spent_usd(self) -> float:
        return sum(seen.outcome.charged_usd for seen in self.observations)


def never(row: int, number: int) -> FailureReason | None:
    return None


def outcome_of(job: SmallJob, order: Order, reason: FailureReason | None = None) -> Outcome:
    """The outcome of an order according to the table, up to its timeout."""
    problem, full = job.problem, float(job.measured.seconds[order.row])
    price = float(problem.price[order.row])
    if reason is not None:
        ran = min(order.timeout_s, full / 4)
        return Outcome(
            End.FAILED, ran, problem.billing.charge(ran, price, boots=order.boots), reason=reason, detail="simulated"
        )
    ran = min(full, order.timeout_s)
    charged = problem.billing.charge(ran, price, boots=order.boots)
    if full <= order.timeout_s:
        metrics = {name: float(values[order.row]) for name, values in job.measured.metrics.items()}
        return Outcome(End.FINISHED, ran, charged, metrics, job.measured.trace(order.row, ran))
    return Outcome(End.TIMEOUT, ran, charged, trace=job.measured.trace(order.row, ran), oracle_s=full)


def explore(
    job: SmallJob, policy: Policy, *, seed: int = 0, parallel: int = 1, fails: Fails = never, most: int = 200
) -> Watched:
    """Drive `decide` and `observe` until they stop; `most` guards against an endless search."""
    watched, now = Watched(), 0.0
    running: list[tuple[float, int, Order]] = []
    while len(watched.orders) < most:
        while len(running) < parallel:
            pending = tuple(order for _, _, order in sorted(running, key=lambda item: item[1]))
            slots = parallel - len(running)
            step = decide(job.problem, policy, watched.observations, pending, seed=seed, elapsed_s=now, slots=slots)
            if isinstance(step, Stopped):
                watched.stopped = step
                break
            watched.stopped = None
            watched.orders.append(step)
            watched.moments.append((len(watched.observations), tuple(order.row for order in pending)))
            ran = outcome_of(job, step, fails(step.row, step.number)).seconds
            heapq.heappush(running, (now + ran, step.number, step))
            reserved = sum(order.reserved_usd for _, _, order in running)
            watched.most_committed_usd = max(watched.most_committed_usd, watched.spent_usd + reserved)
        if not running:
            return watched
        now, _, order = heapq.heappop(running)
        outcome = outcome_of(job, order, fails(order.row, order.number))
        observation: Observation = observe(job.problem, policy, watched.observations, order, outcome)
        watched.observations = (*watched.observations, observation)
    raise AssertionError(f"the search did not end within {most} runs")
