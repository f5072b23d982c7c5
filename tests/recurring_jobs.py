"""Recurring jobs for tests: a space, its problem, and records that grow run by run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import lynceus
from lynceus.problem.problem import Problem
from lynceus.recurring.alternatives import adoption_basis
from lynceus.recurring.record import JobRecord, ProductionRun, StudyRun, Version
from lynceus.recurring.settings import Mode, Settings
from lynceus.trial.outcome import End

DAY_S = 86400.0
START_S = 1_795_000_000.0


def problem(price_factor: dict[str, float] | None = None) -> Problem:
    """Two kinds of machines, 1 to 8 of them."""
    factor = {"small": 1.0, "large": 1.0} | (price_factor or {})
    space = lynceus.Space.build(
        [lynceus.Categorical("vm", ["small", "large"]), lynceus.Ordinal("nodes", [1, 2, 4, 8])],
        price=f"nodes * ({0.1 * factor['small']!r} if vm == 'small' else {0.35 * factor['large']!r})",
    )
    return Problem(space)


def true_seconds(params: Any, size: float) -> float:
    """A job with a serial part and one that scales with machines."""
    speed = 1.0 if params["vm"] == "small" else 3.0
    return float(20.0 + 12.0 * size / (speed * params["nodes"] ** 0.9))


def adopted(mode: Mode = Mode.APPLY, params: Any = None, size: float = 100.0, **settings: Any) -> JobRecord:
    """A job with a study behind it and one adopted version."""
    job = problem()
    params = params or {"vm": "small", "nodes": 4}
    trials = tuple(
        StudyRun(point, true_seconds(point, size), End.FINISHED, size=size)
        for point in (job.space.point(row) for row in range(len(job.space)))
    )
    given = {"allowance_usd": 100.0} | settings
    record = JobRecord("etl", Settings(mode=mode, **given), trials=trials)
    version = Version(1, params, START_S, adopted_s=START_S)
    version = replace(version, basis=adoption_basis(job, record, job.space.row(params), size))
    return replace(record, versions=(version,), current=1)


def with_run(record: JobRecord, seconds: float, size: float | None = 100.0, **more: Any) -> JobRecord:
    """The record with one more run of the current version (or of `version`)."""
    number = len(record.runs)
    values: dict[str, Any] = {"version": record.current, "ended_s": START_S + (number + 1) * DAY_S} | more
    values.setdefault("cost_usd", seconds * 0.4 / 3600)
    run = ProductionRun(f"r{number}", seconds=seconds, size=size, **values)
    return replace(record, runs=(*record.runs, run))


def with_runs(record: JobRecord, times: Any, sizes: Any = None) -> JobRecord:
    """The record with many runs of the current version."""
    for place, seconds in enumerate(times):
        record = with_run(record, float(seconds), 100.0 if sizes is None else float(sizes[place]))
    return record


def noisy(count: int, variation: float, seed: int, typical: float = 300.0) -> Any:
    """Times that vary."""
    return typical * np.exp(variation * np.random.default_rng(seed).standard_normal(count))


def now_s(record: JobRecord) -> float:
    """The moment of the next run."""
    return START_S + (len(record.runs) + 1) * DAY_S


NEVER = math.inf
