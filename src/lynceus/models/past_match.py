"""Runs of earlier jobs in the terms of this job's space: which columns mean the same.

Columns are matched by name; names that differ only in their unit (`memory_mib`, `memory_gib`) are converted. The name of a machine is not
needed where its sizes are columns: machines are compared by what they have. What cannot be matched is left out and said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.described import redundant_names
from lynceus.problem.history import FEWEST_RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lynceus.problem.history import PastJob
    from lynceus.space.column import FloatArray
    from lynceus.space.table import Space

_UNITS = {
    "b": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
    "tib": 2.0**40,
}
"""Bytes in the unit at the end of a column's name."""
_UNIT = re.compile(r"^(.*)_([kmgt]?i?b)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Match:
    """A past job in the features of this space."""

    features: FloatArray
    """`[n, k]`: of the runs that could be matched, in the features `used`."""
    runs: tuple[int, ...]
    """Which of its runs these are."""
    used: tuple[int, ...]
    """Features of the space that the past job has, too."""
    notes: tuple[str, ...] = field(default=())
    """Sentences about what could not be matched."""


@lru_cache(maxsize=256)
def match(space: Space, job: PastJob) -> Match:
    """The runs of a past job in the features of this space."""
    needless = redundant_names(space.features, space.feature_kinds)
    encoded, used, missing = [], [], []
    for place, name in enumerate(space.feature_names):
        column = _encoded(space, place, job)
        if column is None:
            if place not in needless:
                missing.append(name)
        elif place not in needless:
            used.append(place)
            encoded.append(column)
    notes = [f"{job.name} has no column {', '.join(missing)}; it is compared by the others"] if missing else []
    if not used:
        return Match(np.zeros((0, 0)), (), (), (f"{job.name} has no column in common with this space; it is not used",))
    features = np.column_stack(encoded)
    runs = np.flatnonzero(np.isfinite(features).all(axis=1))
    if left := len(features) - len(runs):
        notes.append(
            f"{left} of {len(features)} runs of {job.name} have values that this space does not know; they are not used"
        )
    if len(runs) < FEWEST_RUNS:
        runs_text = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
        notes = [f"{job.name} has {runs_text} that can be compared; {FEWEST_RUNS} are needed, so it is not used"]
        return Match(np.zeros((0, 0)), (), (), tuple(notes))
    return Match(features[runs], tuple(runs.tolist()), tuple(used), tuple(notes))


def _encoded(space: Space, place: int, job: PastJob) -> FloatArray | None:
    """A feature of this space for the runs of a past job `[n]`, NaN for values without a code; None if the job has no such column."""
    name, kind = space.feature_names[place], space.feature_kinds[place]
    found = _column(name, job)
    if found is None:
        return None
    cells, factor = found
    codes = dict(zip(space.columns[name].tolist(), space.features[:, place].tolist(), strict=True))
    numbers = kind != "categorical" and all(isinstance(one, int | float) for one in codes if one is not None)
    encoded = []
    for cell in cells:
        if numbers and isinstance(cell, int | float) and not isinstance(cell, bool):
            value = cell * factor
            encoded.append(value if kind == "numeric" else float(np.log2(value)) if value > 0 else np.nan)
        else:
            encoded.append(codes.get(cell, np.nan))
    return np.array(encoded, dtype=float)


def _column(name: str, job: PastJob) -> tuple[Sequence[object], float] | None:
    """The cells of the past job's column of this name, and the factor that turns its unit into ours."""
    if name in job.columns:
        return job.columns[name], 1.0
    ours = _UNIT.match(name)
    for other, cells in job.columns.items():
        theirs = _UNIT.match(other)
        if ours and theirs and ours[1] == theirs[1]:
            return cells, _UNITS[theirs[2].lower()] / _UNITS[ours[2].lower()]
    return None
