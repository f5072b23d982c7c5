"""Statistics over seeds: paired bootstrap intervals, signed-rank tests, Holm's correction, wins and losses.

A seed that did not reach a level counts as infinite; only `found` leaves it out and uses fewer seeds. A job on which neither of two
policies reached it says nothing about them and is left out of their ratio. Two policies are compared on the seeds that both have run, and
the bootstrap draws the same seeds for both, because most policies start from equal samples at equal seeds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.models.seeds import generator
from lynceus_lab.experiment_file import Statistic

FloatArray = NDArray[np.float64]

DRAWS = 2000
"""Bootstrap samples."""
CONFIDENCE = 0.95
_SIZE = re.compile(r"_(?:bigdata|huge)(?:_|$)")
"""The size in the name of a job."""

BySeed = Mapping[int, float]
"""One number per seed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    seeds: int
    """Number of seeds; over several jobs, the smallest."""
    jobs: int = 1
    """Number of jobs."""
    undecided: int = 0
    """Jobs that were left out, because neither of the two policies reached the level."""
    parts: tuple[float, float] | None = None
    """Numerator and denominator of a ratio on a single job."""


UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0, 0)
"""The estimate for two policies without a common seed."""


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
    """Quantiles along the last axis, linear between order statistics; infinite between a finite and an infinite neighbour."""
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
    """The statistic of one policy, averaged over jobs."""
    samples = [np.array(list(values.values()), dtype=float) for values in jobs]
    with np.errstate(invalid="ignore"):  # `found` is undefined when no seed reached the level
        point = float(np.mean([statistic(sample, name) for sample in samples]))
        drawn = np.mean([statistic(_resampled(sample, seed, i), name) for i, sample in enumerate(samples)], axis=0)
    low, high = interval(drawn, seeds := min(_counted(sample, name) for sample in samples))
    return Estimate(point, low, high, seeds, len(samples))


def ratio(numerator: Sequence[BySeed], denominator: Sequence[BySeed], name: Statistic, seed: int = 0) -> Estimate:
    """Statistic of one policy relative to another, per job on the seeds that both ran, combined by a geometric mean.

    >>> ratio([{0: 2.0, 1: 4.0}], [{0: 1.0, 1: 2.0}], "p50").value
    2.0
    """
    points, drawn, counts = [], [], []
    parts: tuple[float, float] | None = None
    for place, (above, below) in enumerate(zip(numerator, denominator, strict=True)):
        found = log_ratio(above, below, name, seed, place)
        if found is None:
            return UNKNOWN
        parts = found.parts if len(numerator) == 1 else None
        if np.isnan(found.log):
            continue
        points.append(found.log)
        drawn.append(found.draws)
        counts.append(found.seeds)
    if not points:
        return replace(UNKNOWN, undecided=len(numerator), parts=parts)
    with np.errstate(invalid="ignore"):  # each failed on one job: the ratio is undefined
        value, draws = float(np.exp(np.mean(points))), np.exp(mean_of_known(np.array(drawn)))
    left_out = len(numerator) - len(points)
    return Estimate(value, *interval(draws, min(counts)), min(counts), len(points), left_out, parts)


def together(jobs: Sequence[BySeed]) -> BySeed:
    """The seeds of all jobs as one sample, as a CDF over several jobs shows them.

    >>> together([{0: 1.0}, {0: 2.0, 1: 3.0}])
    {0: 1.0, 1000000: 2.0, 1000001: 3.0}
    """
    return {1_000_000 * place + seed: value for place, values in enumerate(jobs) for seed, value in values.items()}


@dataclass(frozen=True, eq=False, slots=True)
class LogRatio:
    """ln of the ratio of a statistic of two policies on one job."""

    log: float
    """NaN when neither policy reached the level."""
    draws: FloatArray
    """The same for every bootstrap sample, `[DRAWS]`."""
    seeds: int
    parts: tuple[float, float]
    """The statistic of each policy."""


def log_ratio(above: BySeed, below: BySeed, name: Statistic, seed: int = 0, place: int = 0) -> LogRatio | None:
    """The ratio on the seeds that both have run; None when there are none. `place` tells the jobs of one bootstrap apart."""
    seeds = sorted(above.keys() & below.keys())
    if not seeds:
        return None
    pair = np.array([[above[s] for s in seeds], [below[s] for s in seeds]])
    picks = _picks(len(seeds), seed, place)
    both = float(statistic(pair[0], name)), float(statistic(pair[1], name))
    return LogRatio(
        float(_log_ratio(np.asarray(both[0]), np.asarray(both[1]))),
        _log_ratio(statistic(pair[0][picks], name), statistic(pair[1][picks], name)),
        min(_counted(side, name) for side in pair),
        both,
    )


def signed_rank(numerator: BySeed, denominator: BySeed) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on log ratios, paired by seed; 1 when all are equal.

    A seed in which only one of the two reached the level counts as the largest difference, one in which neither did as no difference.
    """
    seeds = sorted(numerator.keys() & denominator.keys())
    logs = _log_ratio(np.array([numerator[s] for s in seeds]), np.array([denominator[s] for s in seeds]))
    return _wilcoxon(_clipped(np.nan_to_num(logs, nan=0.0, posinf=math.inf, neginf=-math.inf)))


def across_jobs(ratios: Mapping[str, float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test over clusters of jobs, each job with one ratio; 1 when all are equal.

    A claim about a family generalises over jobs: a hundred seeds of one job are still one job, and two sizes of an algorithm are not
    independent. Log ratios are averaged per cluster; with n clusters p cannot fall below 2 / 2ⁿ, so four never suffice for 0.05. A ratio
    of 0 or infinity (only one of the two reached the level) ranks first; an undecided job (NaN) does not count.

    >>> across_jobs({"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.8, "e": 0.9, "f_huge_x": 0.4, "f_bigdata_x": 0.3})
    0.03125
    """
    known = {job: value for job, value in ratios.items() if not math.isnan(value)}
    with np.errstate(divide="ignore"):
        logs = _clipped(np.log(np.array(list(known.values()), dtype=float)))
    joined: dict[str, list[float]] = {}
    for job, log in zip(known, logs.tolist(), strict=True):
        joined.setdefault(cluster(job), []).append(log)
    return _wilcoxon(np.array([np.mean(of_one) for of_one in joined.values()]))


def clusters(ratios: Mapping[str, float]) -> int:
    """The number of clusters that `across_jobs` counts."""
    return len({cluster(job) for job, value in ratios.items() if not math.isnan(value)})


def cluster(job: str) -> str:
    """The cluster of a job: its algorithm, which is the name without the size.

    >>> cluster("scout/kmeans_huge_spark15"), cluster("scout/kmeans_bigdata_spark15"), cluster("tensorflow/cnn")
    ('scout/kmeans', 'scout/kmeans', 'tensorflow/cnn')
    """
    return _SIZE.split(job)[0]


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities corrected for multiple comparisons (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(probabilities)
    corrected, running = [0.0] * len(probabilities), 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(probabilities) - place) * probabilities[index]))
        corrected[index] = running
    return corrected


def outcome_of(found: Estimate) -> Literal["win", "tie", "loss"]:
    """Whether the interval of a ratio of money lies below 1 (a win of the numerator), above 1, or contains 1."""
    if found.high < 1:
        return "win"
    return "loss" if found.low > 1 else "tie"


def written(value: float) -> float | str:
    """A number for JSON, which has no infinity; `float` parses it again. Four digits are more than the seeds justify.

    >>> written(1 / 3), written(math.inf), written(math.nan)
    (0.3333, 'inf', 'nan')
    """
    return float(f"{value:.4g}") if math.isfinite(value) else str(float(value))


def _log_ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """ln(above / below); NaN where both are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(above) - np.log(below)
    return np.where((above == below) & np.isfinite(above), 0.0, logs)


def _clipped(logs: FloatArray) -> FloatArray:
    """Log ratios in which infinite ones are replaced by ones larger than all others."""
    most = float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0)) + 1.0
    return np.clip(logs, -most, most)


def _wilcoxon(logs: FloatArray) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(logs, zero_method="zsplit").pvalue) if np.any(logs) else 1.0


def _counted(sample: FloatArray, name: Statistic) -> int:
    """The number of seeds behind a statistic."""
    return int(np.isfinite(sample).sum()) if name == "found" else len(sample)


def mean_of_known(drawn: FloatArray) -> FloatArray:
    """Means over jobs `[jobs, draws]` → `[draws]`; a job that is undecided in a draw is left out there, as in the estimate."""
    known = ~np.isnan(drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, drawn, 0.0).sum(axis=0) / known.sum(axis=0))


def _picks(n: int, seed: int, place: int) -> NDArray[np.int64]:
    return generator(seed, "bootstrap", place).integers(0, n, (DRAWS, n))


def _resampled(sample: FloatArray, seed: int, place: int) -> FloatArray:
    return np.asarray(sample[_picks(len(sample), seed, place)])


def interval(drawn: FloatArray, seeds: int) -> tuple[float, float]:
    """The percentile interval of the draws with a value; NaN for a single seed, which says nothing about the spread."""
    known = drawn[~np.isnan(drawn)]
    if seeds < 2 or not len(known):
        return math.nan, math.nan
    tail = (1 - CONFIDENCE) / 2
    return float(quantiles(known, tail)), float(quantiles(known, 1 - tail))
