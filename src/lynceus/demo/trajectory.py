"""One search of the demo's job in simulated time, and its trajectory: the incumbent against the money spent."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from lynceus.demo.job import Job
from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.problem.problem import Problem
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.incumbents import incumbents
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation, Observations


@dataclass(frozen=True)
class Trajectory:
    """How the cost of the incumbent fell while money was spent."""

    policy: str
    seed: int
    spent_usd: tuple[float, ...]
    """Dollars charged up to and including each trial."""
    distance: tuple[float, ...]
    """Cost of the incumbent after each trial, divided by that of the optimum; infinite before a run met the deadline."""

    def spent_until(self, distance: float) -> float:
        """Dollars until the incumbent cost at most `distance` times as much as the optimum; infinite if it never did.

        >>> Trajectory("bo", 0, (1.0, 2.0, 3.0), (math.inf, 1.5, 1.0)).spent_until(1.1)
        3.0
        """
        reached = (usd for usd, now in zip(self.spent_usd, self.distance, strict=True) if now <= distance * (1 + 1e-9))
        return next(reached, math.inf)

    def distance_after(self, usd: float) -> float:
        """The distance once `usd` dollars have been spent: a step function, infinite before the first step.

        >>> Trajectory("bo", 0, (1.0, 2.0, 3.0), (math.inf, 1.5, 1.0)).distance_after(2.9)
        1.5
        """
        steps = bisect_right(self.spent_usd, usd * (1 + 1e-9))
        return self.distance[steps - 1] if steps else math.inf


def run_study(
    job: Job,
    policy: str,
    seed: int,
    ordered: Callable[[Order], None] | None = None,
    settled: Callable[[Observation], None] | None = None,
) -> Study:
    """Search with a named policy until the study stops, in simulated time."""
    clock = SimulatedClock()
    study = Study(job.problem, preset(policy), seed=seed, name="demo", clock=clock)
    explore(study, TableExecutor(job.problem, job.measured, clock), clock, ordered=ordered, settled=settled)
    return study


def trajectory_of(job: Job, policy: str, seed: int, observations: Observations) -> Trajectory:
    """The trajectory of a search."""
    spent = accumulate(seen.outcome.charged_usd for seen in observations)
    best = incumbents(job.problem, observations)
    distances = (math.inf if one is None else one.value / job.optimum_usd for one in best)
    return Trajectory(policy, seed, tuple(spent), tuple(distances))


def saved_usd(problem: Problem, seen: Observation) -> float:
    """Dollars that stopping a run early saved; the table has the full running time."""
    full_s = seen.outcome.oracle_s
    if seen.outcome.end is not End.TIMEOUT or full_s is None:
        return 0.0
    price = float(problem.price[seen.row])
    return max(0.0, problem.billing.charge(full_s, price, boots=seen.order.boots) - seen.outcome.charged_usd)
