"""The same job and budget with other policies and other luck, in processes of their own."""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from lynceus.demo.course import Course, course_of, run_study
from lynceus.demo.job import demo_job

BASELINES = ("bo", "random")
QUICK = frozenset({"bo", "random", "random+timeouts", "sweep"})
"""Policies whose decisions take about a millisecond, so that more seeds fit into the demo's minute."""
PURSE = 3.0
"""Baselines may spend this multiple of the budget, so that it can be said what they need and not only that the budget is too little."""
NEAR = 1.10
"""As near to the optimum as people usually ask for."""


@dataclass(frozen=True)
class Task:
    """One exploration to make; small, so that it travels to another process."""

    policy: str
    seed: int
    job_seed: int
    budget_usd: float

    def run(self) -> Course:
        """Make it."""
        job = demo_job(self.job_seed, self.budget_usd)
        return course_of(job, self.policy, self.seed, run_study(job, self.policy, self.seed).history)


@dataclass(frozen=True)
class Summary:
    """What a policy came to over several seeds."""

    policy: str
    seeds: int
    arrived: int
    """Seeds that came as near as asked for."""
    usd_until_near: float
    """Median of the money spent until then; infinite when most never got there."""
    most_usd: float
    """What each exploration was allowed to spend."""
    final: float
    """Median distance when the budget was spent: cost of the incumbent over that of the optimum."""


def tasks(policy: str, seed: int, budget_usd: float, seeds: int) -> list[Task]:
    """The baselines and the chosen policy, `seeds` explorations each (twice that where it is quick, and those first).

    The chosen policy's first seed is missing: that is the exploration which is being watched.
    """
    made = []
    for name in sorted(dict.fromkeys((*BASELINES, policy)), key=lambda name: name not in QUICK):
        usd = budget_usd * (1.0 if name == policy else PURSE)
        count = seeds * (2 if name in QUICK else 1)
        made += [Task(name, seed + turn, seed, usd) for turn in range(count) if (name, turn) != (policy, 0)]
    return made


@contextmanager
def background(work: Sequence[Task], workers: int | None = None) -> Iterator[Iterator[Course]]:
    """Courses in the order in which they get ready; what is unfinished when the block ends is dropped."""
    count = workers or max(1, min(2, os.cpu_count() or 1))
    with multiprocessing.get_context("spawn").Pool(count, initializer=_one_thread) as pool:
        yield pool.imap_unordered(Task.run, work)


def collect(courses: Iterator[Course], patience_s: float) -> Iterator[Course]:
    """Courses until `patience_s` have passed."""
    until = time.monotonic() + patience_s
    while True:
        try:
            yield courses.next(timeout=max(0.0, until - time.monotonic()))  # type: ignore[attr-defined]
        except (StopIteration, multiprocessing.TimeoutError):
            return


def in_order(courses: Sequence[Course]) -> list[Course]:
    """The policy of the first course, then the others by name, each by seed: however the processes were scheduled."""
    return sorted(courses, key=lambda one: (one.policy != courses[0].policy, one.policy, one.seed))


def summarise(courses: Sequence[Course], near: float, budget_usd: float) -> list[Summary]:
    """One line per policy, in order of appearance; the first is the chosen one."""
    lines = []
    for policy in dict.fromkeys(course.policy for course in courses):
        own = [course for course in courses if course.policy == policy]
        until = [course.spent_until(near) for course in own]
        arrived = sum(map(math.isfinite, until))
        most_usd = budget_usd * (1.0 if policy == courses[0].policy else PURSE)
        final = median(course.distance_after(budget_usd) for course in own)
        lines.append(Summary(policy, len(own), arrived, median(until), most_usd, final))
    return lines


def _one_thread() -> None:
    os.environ["LYNCEUS_THREADS"] = "1"
