"""What a past job says of every configuration of this one: its curve, read for several amounts of data, and how far it is to be believed.

Shapes: q configurations, n runs of the past job, d features.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.blas import one_thread
from lynceus.models.features import log_price
from lynceus.models.gaussian.prior import Settings
from lynceus.models.gaussian.regression import fit
from lynceus.models.past_match import Match, match
from lynceus.models.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lynceus.problem.history import PastJob
    from lynceus.space.column import FloatArray
    from lynceus.space.table import Space

_MOST = 300
"""Runs of a past job that are learnt from; evenly chosen where it has more."""
_NODES = re.compile(
    r"^(num_?)?(nodes?|workers?|machines?|instances?|executors?|replicas?|hosts?|servers?)$", re.IGNORECASE
)
"""Columns that say among how many machines the data are divided."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""By how much more data this job may have than a past one."""
_ROUGH = Settings(smooth=False, log_length=(0.5, 1.0), constant=0.25, log_signal=(0.0, 1.0))
_SLOPE, _SLOPE_STD = -0.5, 0.45
"""Time falls with the price to the power of −0.5 ± 0.45: what the default model expects of any job."""
_LEAST_SPREAD = 0.02
"""Metrics of a past job that differ by less (std of the logarithm) may differ by as much as this."""
_FEW = 8
"""With fewer runs, nothing is held out."""
_UNKNOWN = 0.7
"""How far a past job with so few runs is believed."""


@dataclass(frozen=True, eq=False)
class Curve:
    """What a past job says of every configuration of this job."""

    name: str
    factor: float
    """This job has so many times the data of the past one."""
    mean: FloatArray
    """ln seconds, or ln of a metric `[q]`."""
    std: FloatArray
    """How uncertain that is `[q]`."""
    spread: float = 1.0
    """The std of the past job's own values, at most 1: what a small difference is."""


@lru_cache(maxsize=256)
def time_curves(space: Space, job: PastJob, factors: tuple[float, ...] = FACTORS) -> tuple[Curve, ...]:
    """The running time of a past job, for several amounts of data; empty if it cannot be compared.

    κ times the data on n machines leave each machine the same data as before on n/κ machines: what no longer fits into memory there did
    not fit here either. So a past job is also read at n/κ machines. Without a column of machines there is only κ = 1.
    """
    found = match(space, job)
    if not found.used:
        return ()
    runs = _chosen(found)
    nodes = next((place for place in found.used if _NODES.match(space.feature_names[place])), None)
    logs = np.log([job.seconds[run] for run in runs])
    stopped = np.array([job.stopped[run] for run in runs])
    return _curves(space, job.name, found, runs, logs, stopped, (1.0,) if nodes is None else factors)


@lru_cache(maxsize=256)
def metric_curve(space: Space, job: PastJob, metric: str) -> Curve | None:
    """A positive metric of a past job by its logarithm; None where the job has too few values."""
    found, values = match(space, job), job.metrics.get(metric)
    if not found.used or values is None:
        return None
    known = [run for run in _chosen(found) if (values[run] or 0.0) > 0 and not job.stopped[run]]
    if len(known) < 3 or len(known) < 0.9 * sum(values[run] is not None for run in found.runs):
        return None
    logs = np.log([float(values[run] or 1.0) for run in known])
    spread = min(max(float(np.std(logs)), _LEAST_SPREAD), 1.0)
    return _curves(space, job.name, found, known, logs, np.zeros(len(known), dtype=bool), (1.0,), spread)[0]


@lru_cache(maxsize=256)
def credibility(space: Space, job: PastJob) -> float:
    """How far a past job is believed before any run of this one, from 0 to 1, by two questions about the past job alone.

    Do its own runs predict each other? (The correlation of predicted and measured ln times, each half predicted from the other one.)
    And is it possible as a job: does its time fall with the price, as the default model expects of any job? Here stopped runs count
    with the time that they had: that expensive machines would have taken much longer is what the model guesses, not what was measured.
    """
    whole = replace(job, stopped=(False,) * len(job.stopped)) if any(job.stopped) else job
    curves = time_curves(space, whole, (1.0,))
    if not curves:
        return 0.0
    price = log_price(space)
    slope = float(np.polyfit(price, curves[0].mean, 1)[0]) if np.ptp(price) > 0 else _SLOPE
    unlikely = max(slope - _SLOPE, 0.0) / _SLOPE_STD
    return float(np.exp(-0.5 * unlikely**2)) * _held_out(space, job)


def _held_out(space: Space, job: PastJob) -> float:
    """The correlation of measured ln times with those that the other half of the runs predicts, beyond two standard errors of chance."""
    found = match(space, job)
    runs = _chosen(found)
    finished = np.array([not job.stopped[run] for run in runs])
    if finished.sum() < _FEW:
        return _UNKNOWN
    features, kinds, _ = _features(space, found, runs, ())
    logs, half = np.log([job.seconds[run] for run in runs]), np.arange(len(runs)) % 2
    predicted = np.empty(len(runs))
    with one_thread():
        for left in (0, 1):
            kept = np.flatnonzero(half != left)
            model = fit(features, kinds, kept, logs[kept], derive(0, "held out", left), _ROUGH, ~finished[kept])
            predicted[half == left] = model.mean[half == left]
    if np.ptp(logs[finished]) == 0 or np.ptp(predicted[finished]) == 0:
        return _UNKNOWN
    found_by_chance = min(2.0 / math.sqrt(float(finished.sum())), 0.9)
    measured = float(np.corrcoef(predicted[finished], logs[finished])[0, 1])
    return max(measured - found_by_chance, 0.0) / (1.0 - found_by_chance)


def _chosen(found: Match) -> list[int]:
    every = np.unique(np.linspace(0, len(found.runs) - 1, min(len(found.runs), _MOST)).astype(int))
    return [found.runs[place] for place in every]


def _curves(
    space: Space,
    name: str,
    found: Match,
    runs: Sequence[int],
    logs: FloatArray,
    stopped: np.ndarray[tuple[int], np.dtype[np.bool_]],
    factors: Sequence[float],
    spread: float = 1.0,
) -> tuple[Curve, ...]:
    features, kinds, first = _features(space, found, runs, factors)
    rows, settings = first + np.arange(len(runs)), replace(_ROUGH, spread=spread)
    with one_thread():
        model = fit(features, kinds, rows, logs, derive(0, "past job", len(runs)), settings, stopped)
    mean, std = (part[:first].reshape(len(factors), -1) for part in (model.mean, model.std))
    return tuple(Curve(name, factor, mean[i], std[i], spread) for i, factor in enumerate(factors))


def _features(
    space: Space, found: Match, runs: Sequence[int], factors: Sequence[float]
) -> tuple[FloatArray, list[str], int]:
    """Features of all configurations for every factor, then of the runs; the kind of each; and the place of the first run.

    Beside a machine's sizes stand those of all machines together, because memory that does not suffice is a cliff in the total.
    """
    nodes = next((place for place in found.used if _NODES.match(space.feature_names[place])), None)
    places = {run: place for place, run in enumerate(found.runs)}
    own = found.features[[places[run] for run in runs]]
    rows = [_with_data(space, nodes, factor)[:, found.used] for factor in factors]
    features, kinds = np.vstack([*rows, own]), [str(space.feature_kinds[place]) for place in found.used]
    if nodes is not None:
        total = _totals(features, kinds, found.used.index(nodes))
        features, kinds = np.column_stack([features, *total]), kinds + ["numeric"] * len(total)
    return features, kinds, len(features) - len(own)


def _totals(features: FloatArray, kinds: Sequence[str], nodes: int) -> list[FloatArray]:
    """log₂ of machines × size, for every positive size."""
    machines = features[:, nodes] if kinds[nodes] == "log" else np.log2(np.maximum(features[:, nodes], 1e-9))
    found = []
    for place, kind in enumerate(kinds):
        size = features[:, place]
        if place == nodes or kind == "categorical" or (kind == "numeric" and (size <= 0).any()) or np.ptp(size) == 0:
            continue
        found.append(machines + (np.log2(size) if kind == "numeric" else size))
    return found


def _with_data(space: Space, nodes: int | None, factor: float) -> FloatArray:
    """The features `[q, d]` of configurations on which each machine has as much data as here with `factor` times the data."""
    features = space.features.copy()
    if nodes is not None:
        kind = space.feature_kinds[nodes]
        features[:, nodes] = features[:, nodes] - np.log2(factor) if kind == "log" else features[:, nodes] / factor
    return features
