"""The same job and budget with other policies and other seeds, in processes of their own."""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from lynceus.demo.job import demo_job
from lynceus.demo.trajectory import Trajectory, run_study, trajectory_of

BASELINES = ("bo", "random")
QUICK = frozenset({"bo", "random", "random+timeouts", "sweep"})
"""Policies that decide within about a millisecond, so that more seeds fit into the demo's minute."""
BASELINE_BUDGETS = 3.0
"""Baselines may spend this multiple of the budget, to measure what they need."""
NEAR_OPTIMUM = 1.10
"""The distance from the optimum at which policies are compared."""


@dataclass(frozen=True)
class Search:
    """One search to run; small, so that it can be sent to another process."""

    policy: str
    seed: int
    job_seed: int
    budget_usd: float

    def run(self) -> Trajectory:
        """Run the search."""
        job = demo_job(self.job_seed, self.budget_usd)
        return trajectory_of(job, self.policy, self.seed, run_study(job, self.policy, self.seed).observations)


@dataclass(frozen=True)
class Summary:
    """The result of a policy over several seeds."""

    policy: str
    seeds: int
    reached: int
    """Seeds that got near the optimum."""
    usd_until_near: float
    """Median of the money spent until then; infinite when most seeds did not get there."""
    budget_usd: float
    """What each search was allowed to spend."""
    final_distance: float
    """Median distance once the job's budget was spent: cost of the incumbent divided by that of the optimum."""


def searches(policy: str, seed: int, budget_usd: float, seeds: int) -> list[Search]:
    """The baselines and the chosen policy with `seeds` seeds each (quick policies with twice as many, and first).

    The first seed of the chosen policy is left out: the user watches that search.
    """
    found = []
    for name in sorted(dict.fromkeys((*BASELINES, policy)), key=lambda name: name not in QUICK):
        usd = budget_usd * (1.0 if name == policy else BASELINE_BUDGETS)
        count = seeds * (2 if name in QUICK else 1)
        found += [Search(name, seed + turn, seed, usd) for turn in range(count) if (name, turn) != (policy, 0)]
    return found


@contextmanager
def background(work: Sequence[Search], workers: int | None = None) -> Iterator[Iterator[Trajectory]]:
    """Trajectories in the order in which they finish; unfinished searches end with the context."""
    count = workers or max(1, min(2, os.cpu_count() or 1))
    with multiprocessing.get_context("spawn").Pool(count, initializer=_one_thread) as pool:
        yield pool.imap_unordered(Search.run, work)


def collect(trajectories: Iterator[Trajectory], timeout_s: float) -> Iterator[Trajectory]:
    """Trajectories that finish within `timeout_s`."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            yield trajectories.next(timeout=max(0.0, until - time.monotonic()))  # type: ignore[attr-defined]
        except (StopIteration, multiprocessing.TimeoutError):
            return


def in_order(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The policy of the first trajectory, then the others by name, each by seed: independent of scheduling."""
    return sorted(trajectories, key=lambda one: (one.policy != trajectories[0].policy, one.policy, one.seed))


def summarise(trajectories: Sequence[Trajectory], near: float, budget_usd: float) -> list[Summary]:
    """One line per policy, in order of appearance; the first is the chosen one."""
    lines = []
    for policy in dict.fromkeys(one.policy for one in trajectories):
        own = [one for one in trajectories if one.policy == policy]
        until = [one.spent_until(near) for one in own]
        reached = sum(map(math.isfinite, until))
        allowed_usd = budget_usd * (1.0 if policy == trajectories[0].policy else BASELINE_BUDGETS)
        final = median(one.distance_after(budget_usd) for one in own)
        lines.append(Summary(policy, len(own), reached, median(until), allowed_usd, final))
    return lines


def _one_thread() -> None:
    os.environ["LYNCEUS_THREADS"] = "1"
