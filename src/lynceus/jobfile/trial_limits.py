"""Cores and memory that a trial may use on this machine, from the section `resources`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.sections.values import memory_gib
from lynceus.space.column import FloatArray
from lynceus.space.expression import Expression
from lynceus.space.table import Space


def trial_limits(job: Job, space: Space, field: Literal["cpus", "memory"]) -> FloatArray | None:
    """Cores or GiB of every configuration `[q]`; None: no limit."""
    if job.spec.resources.from_catalog:
        return _machine_size(job, space, field)
    value: float | str | None = getattr(job.spec.resources, field)
    if value is None:
        return None
    if isinstance(value, str) and field == "memory" and (gib := memory_gib(value)) is not None:
        value = gib
    with job.at("resources", field):
        if isinstance(value, str):
            column = Expression.parse(value, "the expression").evaluate(space.columns)
        else:
            column = np.full(len(space), value)
        try:
            amounts = np.array([float(cell) for cell in column.tolist()])
        except (TypeError, ValueError):
            raise InputError(
                f"{value!r} is not a number for every configuration; map strings to numbers in 'derived'."
            ) from None
        if not (np.isfinite(amounts) & (amounts > 0)).all():
            raise InputError(f"{value!r} is {amounts.min():g} for some configuration; give amounts above 0.")
        return amounts


def _machine_size(job: Job, space: Space, field: Literal["cpus", "memory"]) -> FloatArray | None:
    """What the cloud machines have, when the local machine stands in for them; real machines need no limit."""
    if job.spec.executor.kind != "local":
        return None
    column = {"cpus": "vcpus", "memory": "memory_gib"}[field]
    return np.asarray(space.columns[column] * space.columns["num_nodes"], dtype=np.float64)
