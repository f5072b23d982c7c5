"""Runs of other jobs that scale in a known way, for the tests of what is learnt from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lynceus.models.past_pairs import PastRuns
from lynceus.models.state import State
from scale_out_job import scaling_job

JOB = scaling_job()
Q = len(JOB.problem.space)


def resources(q: int = Q) -> np.ndarray:
    """Two resources of every configuration: a grid of cores, and an irrelevant one."""
    rng = np.random.default_rng(3)
    return np.column_stack([np.log(2.0 ** (np.arange(q) % 4)), rng.normal(size=q)])


def past(jobs: int = 12, noise: float = 0.01) -> PastRuns:
    """Jobs that scale with cores in proportion to the processor load that they report."""
    rng = np.random.default_rng(0)
    job, had, seconds, metrics = [], [], [], []
    for name in range(jobs):
        busy = rng.uniform(0, 1)
        for cores in (0.0, 0.7, 1.4, 2.1):
            job.append(name)
            had.append([cores, rng.normal()])
            seconds.append(np.exp(rng.normal(5, 0.0) - busy * cores + noise * rng.normal()))
            metrics.append([np.expm1(3 * busy), rng.uniform(0, 5)])
    return PastRuns(np.array(job), np.array(had), np.array(seconds), np.array(metrics), ("cpu", "fan"), resources())


def seen(rows: Iterable[int], busy: float | None) -> State:
    """The state of this job, with runs that report the processor load."""
    observations = JOB.finished(rows)
    report = {} if busy is None else {"cpu": float(np.expm1(3 * busy)), "fan": 1.0}
    return State.present(
        JOB.problem, tuple(replace(one, outcome=replace(one.outcome, metrics=report)) for one in observations)
    )
