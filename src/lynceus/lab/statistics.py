"""Numbers over seeds, with how sure they are: bootstrap intervals in pairs, signed ranks, Holm's correction, wins and losses.

A seed that never got there counts as infinite and is never dropped. Two competitors are compared on the seeds that both have run, and a
bootstrap draws the same seeds for both, because equal seeds start from equal samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.lab.spec import Statistic
from lynceus.randomness import generator

FloatArray = NDArray[np.float64]

DRAWS = 2000
"""Bootstrap samples."""
CONFIDENCE = 0.95

BySeed = Mapping[int, float]
"""One number per seed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval."""

    value: float
    low: float
    high: float
    seeds: int
    """How many seeds it rests on; of several jobs, the fewest."""


def statistic(sample: FloatArray, name: Statistic) -> FloatArray:
    """A statistic along the last axis `[…, n]` → `[…]`.

    >>> statistic(np.array([1.0, 2.0, math.inf]), "p50"), statistic(np.array([1.0, math.inf]), "share")
    (array(2.), array(0.5))
    """
    if name == "share":
        return np.asarray(np.isfinite(sample).mean(axis=-1))
    if name == "found":
        known = np.isfinite(sample)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(known, sample, 0.0).sum(axis=-1) / known.sum(axis=-1))
    if name == "mean":
        with np.errstate(invalid="ignore"):
            return np.asarray(sample.mean(axis=-1))
    return quantiles(sample, {"p50": 0.5, "p90": 0.9}[name])


def quantiles(sample: FloatArray, q: float) -> FloatArray:
    """Linear between order statistics along the last axis; between a finite and an infinite neighbour it is infinite."""
    ordered = np.sort(sample, axis=-1)
    place = q * (sample.shape[-1] - 1)
    low = int(place)
    high = min(low + 1, sample.shape[-1] - 1)
    share = place - low
    below, above = ordered[..., low], ordered[..., high]
    if share == 0.0:
        return np.asarray(below)
    with np.errstate(invalid="ignore"):
        between = below + share * (above - below)
    return np.where(np.isinf(above), above, between)


def estimate(jobs: Sequence[BySeed], name: Statistic, seed: int = 0) -> Estimate:
    """The statistic of one competitor, averaged over jobs."""
    samples = [np.array(list(values.values()), dtype=float) for values in jobs]
    with np.errstate(invalid="ignore"):  # `found` has no value where no seed got there
        point = float(np.mean([statistic(sample, name) for sample in samples]))
        drawn = np.mean([statistic(_resampled(sample, seed, i), name) for i, sample in enumerate(samples)], axis=0)
    return _interval(point, drawn, min(len(sample) for sample in samples))


def ratio(numerator: Sequence[BySeed], denominator: Sequence[BySeed], name: Statistic, seed: int = 0) -> Estimate:
    """Statistic of one competitor over that of another, job by job on the seeds that both ran, joined by a geometric mean.

    >>> ratio([{0: 2.0, 1: 4.0}], [{0: 1.0, 1: 2.0}], "p50").value
    2.0
    """
    points, drawn, fewest = [], [], math.inf
    for place, (above, below) in enumerate(zip(numerator, denominator, strict=True)):
        seeds = sorted(above.keys() & below.keys())
        if not seeds:
            return Estimate(math.nan, math.nan, math.nan, 0)
        pair = np.array([[above[s] for s in seeds], [below[s] for s in seeds]])
        picks = _picks(len(seeds), seed, place)
        points.append(_log_ratio(statistic(pair[0], name), statistic(pair[1], name)))
        drawn.append(_log_ratio(statistic(pair[0][picks], name), statistic(pair[1][picks], name)))
        fewest = min(fewest, len(seeds))
    with np.errstate(invalid="ignore"):  # one never got there on one job, the other on another: no number
        return _interval(float(np.exp(np.mean(points))), np.exp(np.mean(drawn, axis=0)), int(fewest))


def signed_rank(numerator: BySeed, denominator: BySeed) -> float:
    """Two-sided p of Wilcoxon's signed ranks on log ratios, in pairs by seed; 1 when nothing differs.

    A seed that only one of the two got through counts as the largest difference there is.
    """
    from scipy.stats import wilcoxon

    seeds = sorted(numerator.keys() & denominator.keys())
    logs = _log_ratio(np.array([numerator[s] for s in seeds]), np.array([denominator[s] for s in seeds]))
    finite = np.abs(logs[np.isfinite(logs)])
    most = float(finite.max(initial=0.0)) + 1.0
    logs = np.clip(logs, -most, most)
    if not np.any(logs):
        return 1.0
    return float(wilcoxon(logs, zero_method="zsplit").pvalue)


def across_jobs(ratios: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed ranks over jobs, each with one ratio; 1 when nothing differs.

    Jobs are what a claim about a family generalises over: a hundred seeds of one job are still one job. With n jobs p cannot fall
    below 2 / 2ⁿ, so four jobs never suffice for 0.05. A ratio of 0 or infinity (one of the two never got there) ranks first.

    >>> across_jobs([0.5, 0.6, 0.7, 0.8, 0.9, 0.4])
    0.03125
    """
    from scipy.stats import wilcoxon

    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(ratios, dtype=float))
    logs = logs[~np.isnan(logs)]
    most = float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0)) + 1.0
    logs = np.clip(logs, -most, most)
    return float(wilcoxon(logs, zero_method="zsplit").pvalue) if np.any(logs) else 1.0


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities corrected for having asked several questions at once (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(probabilities)
    corrected, running = [0.0] * len(probabilities), 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(probabilities) - place) * probabilities[index]))
        corrected[index] = running
    return corrected


def verdict_of(found: Estimate) -> Literal["win", "tie", "loss"]:
    """Whether a ratio of money is surely below 1 (a win of the numerator), surely above, or neither."""
    if found.high < 1:
        return "win"
    return "loss" if found.low > 1 else "tie"


def _log_ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """ln(above / below); 0 where both are infinite, because neither got there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(above) - np.log(below)
    return np.where(above == below, 0.0, logs)


def _picks(n: int, seed: int, place: int) -> NDArray[np.int64]:
    return generator(seed, "bootstrap", place).integers(0, n, (DRAWS, n))


def _resampled(sample: FloatArray, seed: int, place: int) -> FloatArray:
    return np.asarray(sample[_picks(len(sample), seed, place)])


def _interval(point: float, drawn: FloatArray, seeds: int) -> Estimate:
    """The percentile interval; one seed says nothing about its own spread."""
    if seeds < 2:
        return Estimate(point, math.nan, math.nan, seeds)
    tail = (1 - CONFIDENCE) / 2
    known = np.where(np.isnan(drawn), point, drawn)
    return Estimate(point, float(quantiles(known, tail)), float(quantiles(known, 1 - tail)), seeds)
