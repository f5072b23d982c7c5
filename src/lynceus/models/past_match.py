"""Runs of earlier jobs in the terms of this job's space: which columns mean the same, and what a past job says of every configuration.

Columns are matched by name; names that differ only in their unit (`memory_mib`, `memory_gib`) are converted. The name of a machine is not
needed where its sizes are columns: machines are compared by what they have. What cannot be matched is left out and said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.blas import one_thread
from lynceus.models.described import redundant_names
from lynceus.models.gaussian.prior import Settings
from lynceus.models.gaussian.regression import fit
from lynceus.models.seeds import derive

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
_FEWEST = 3
"""Fewer runs of a past job say nothing about its shape."""
_MOST = 300
"""Runs of a past job that are learnt from; evenly chosen where it has more."""
_NODES = re.compile(
    r"^(num_?)?(nodes?|workers?|machines?|instances?|executors?|replicas?|hosts?|servers?)$", re.IGNORECASE
)
"""Columns that say among how many machines the data are divided."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""By how much more data this job may have than a past one."""
_ROUGH = Settings(smooth=False, log_length=(0.5, 1.0), constant=0.25, log_signal=(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Curve:
    """What a past job says of every configuration of this job."""

    name: str
    factor: float
    """Its data are so many times those of the past job."""
    mean: FloatArray
    """ln seconds `[q]`."""
    std: FloatArray
    """How uncertain that is `[q]`."""


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


def past_curves(space: Space, history: Sequence[PastJob]) -> list[Curve]:
    """The past jobs that say something about this space, each for several amounts of data.

    κ times the data on n machines leave each machine the same data as before on n/κ machines: what no longer fits into memory there did
    not fit here either. So a past job is also read at n/κ machines. Without a column of machines there is only κ = 1.
    """
    return [curve for job in history for curve in _curves(space, job)]


@lru_cache(maxsize=256)
def _curves(space: Space, job: PastJob) -> tuple[Curve, ...]:
    found = match(space, job)
    if not found.used:
        return ()
    chosen = np.unique(np.linspace(0, len(found.runs) - 1, min(len(found.runs), _MOST)).astype(int))
    runs = np.array(found.runs)[chosen]
    logs = np.log([job.seconds[run] for run in runs])
    stopped = np.array([job.stopped[run] for run in runs])
    nodes = next((place for place in found.used if _NODES.match(space.feature_names[place])), None)
    factors = (1.0,) if nodes is None else FACTORS
    scaled = [_with_data(space, nodes, factor)[:, found.used] for factor in factors]
    features = np.vstack([*scaled, found.features[chosen]])
    kinds = [space.feature_kinds[place] for place in found.used]
    rows = len(space) * len(factors) + np.arange(len(runs))
    with one_thread():
        model = fit(features, kinds, rows, logs, derive(0, "past job", len(runs)), _ROUGH, stopped)
    mean, std = (part[: rows[0]].reshape(len(factors), -1) for part in (model.mean, model.std))
    return tuple(Curve(job.name, factor, mean[i], std[i]) for i, factor in enumerate(factors))


def _with_data(space: Space, nodes: int | None, factor: float) -> FloatArray:
    """The features `[q, d]` of configurations on which each machine has as much data as here with `factor` times the data."""
    features = space.features.copy()
    if nodes is not None:
        kind = space.feature_kinds[nodes]
        features[:, nodes] = features[:, nodes] - np.log2(factor) if kind == "log" else features[:, nodes] / factor
    return features


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
    if len(runs) < _FEWEST:
        notes = [f"{job.name} has {len(runs)} runs that can be compared; {_FEWEST} are needed, so it is not used"]
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
