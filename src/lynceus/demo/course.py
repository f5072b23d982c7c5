"""One exploration of the demo's job in pretended time, and what it comes to: the incumbent against the money spent."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from lynceus.demo.job import Job
from lynceus.engine import explore
from lynceus.executor import PretendedClock, TableExecutor
from lynceus.history import End, History, Observation, Order
from lynceus.policy import preset
from lynceus.problem import Problem
from lynceus.situation import feasible_runs
from lynceus.study import Study


@dataclass(frozen=True)
class Course:
    """How the best known configuration got cheaper while money was spent."""

    policy: str
    seed: int
    spent_usd: tuple[float, ...]
    """Dollars charged up to and with each trial."""
    distance: tuple[float, ...]
    """Cost of the incumbent over that of the true optimum after each trial; infinite before a run was on time."""

    def spent_until(self, distance: float) -> float:
        """Dollars until the incumbent was at most `distance` times as expensive as the optimum; infinite if it never was.

        >>> Course("bo", 0, (1.0, 2.0, 3.0), (math.inf, 1.5, 1.0)).spent_until(1.1)
        3.0
        """
        reached = (usd for usd, now in zip(self.spent_usd, self.distance, strict=True) if now <= distance * (1 + 1e-9))
        return next(reached, math.inf)

    def distance_after(self, usd: float) -> float:
        """The distance once `usd` dollars have been spent: a staircase, infinite before the first step.

        >>> Course("bo", 0, (1.0, 2.0, 3.0), (math.inf, 1.5, 1.0)).distance_after(2.9)
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
    """Explore the job with a named policy until the study stops; hours pass in a blink."""
    clock = PretendedClock()
    study = Study(job.problem, preset(policy), seed=seed, name="demo", clock=clock)
    explore(study, TableExecutor(job.problem, job.measured, clock), clock, ordered=ordered, settled=settled)
    return study


def course_of(job: Job, policy: str, seed: int, history: History) -> Course:
    """The course that a history took."""
    spent, best, sums, distances = 0.0, math.inf, [], []
    for seen in history:
        spent += seen.outcome.charged_usd
        best = min(best, cost_on_time(job.problem, seen))
        sums.append(spent)
        distances.append(best / job.optimum_usd)
    return Course(policy, seed, tuple(sums), tuple(distances))


def cost_on_time(problem: Problem, seen: Observation) -> float:
    """What a run that finished in time costs; infinite for all others."""
    return min((usd for _, usd in feasible_runs(problem, (seen,))), default=math.inf)


def saved_usd(problem: Problem, seen: Observation) -> float:
    """Dollars that stopping a run early kept in the purse; a replayed table knows what its end would have cost."""
    full_s = seen.outcome.oracle_s
    if seen.outcome.end is not End.CAPPED or full_s is None:
        return 0.0
    price = float(problem.price[seen.row])
    return max(0.0, problem.tariff.charge(full_s, price, boots=seen.order.boots) - seen.outcome.charged_usd)
