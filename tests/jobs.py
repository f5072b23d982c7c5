"""Explorations in pretended time, watched at every instant."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from lynceus.history import End, History, Observation, Order, Outcome, Reason
from lynceus.policy import Policy, Stopped, absorb, decide
from lynceus.testing import SmallJob

Fails = Callable[[int, int], Reason | None]
"""(row, number of the trial) → why it fails, or nothing: it runs."""


@dataclass
class Watched:
    """What happened in an exploration."""

    history: History = ()
    orders: list[Order] = field(default_factory=list)
    stopped: Stopped | None = None
    most_committed_usd: float = 0.0
    """Largest sum of charged and reserved dollars at any instant."""
    moments: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """When each order was made: (runs settled by then, rows under way)."""

    @property
    def rows(self) -> list[int]:
        return [order.row for order in self.orders]

    @property
    def spent_usd(self) -> float:
        return sum(seen.outcome.charged_usd for seen in self.history)


def never(row: int, number: int) -> Reason | None:
    return None


def outcome_of(job: SmallJob, order: Order, reason: Reason | None = None) -> Outcome:
    """The truth about an order, up to its cap."""
    problem, full = job.problem, float(job.measured.seconds[order.row])
    price = float(problem.price[order.row])
    if reason is not None:
        ran = min(order.cap_s, full / 4)
        return Outcome(
            End.FAILED, ran, problem.tariff.charge(ran, price, boots=order.boots), reason=reason, detail="made up"
        )
    ran = min(full, order.cap_s)
    charged = problem.tariff.charge(ran, price, boots=order.boots)
    if full <= order.cap_s:
        metrics = {name: float(values[order.row]) for name, values in job.measured.metrics.items()}
        return Outcome(End.FINISHED, ran, charged, metrics, job.measured.trace(order.row, ran))
    return Outcome(End.CAPPED, ran, charged, trace=job.measured.trace(order.row, ran), oracle_s=full)


def explore(
    job: SmallJob, policy: Policy, *, seed: int = 0, parallel: int = 1, fails: Fails = never, most: int = 200
) -> Watched:
    """Drive `decide` and `absorb` until they stop; `most` guards against an exploration without end."""
    watched, now = Watched(), 0.0
    running: list[tuple[float, int, Order]] = []
    while len(watched.orders) < most:
        while len(running) < parallel:
            pending = tuple(order for _, _, order in sorted(running, key=lambda item: item[1]))
            slots = parallel - len(running)
            step = decide(job.problem, policy, watched.history, pending, seed=seed, elapsed_s=now, slots=slots)
            if isinstance(step, Stopped):
                watched.stopped = step
                break
            watched.stopped = None
            watched.orders.append(step)
            watched.moments.append((len(watched.history), tuple(order.row for order in pending)))
            ran = outcome_of(job, step, fails(step.row, step.number)).seconds
            heapq.heappush(running, (now + ran, step.number, step))
            reserved = sum(order.reserved_usd for _, _, order in running)
            watched.most_committed_usd = max(watched.most_committed_usd, watched.spent_usd + reserved)
        if not running:
            return watched
        now, _, order = heapq.heappop(running)
        outcome = outcome_of(job, order, fails(order.row, order.number))
        observation: Observation = absorb(job.problem, policy, watched.history, order, outcome)
        watched.history = (*watched.history, observation)
    raise AssertionError(f"the exploration did not end within {most} runs")
