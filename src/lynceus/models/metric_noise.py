"""How much a reported metric differs between the runs of one configuration, and the chance that the next run keeps a limit on it.

A run reports y = f + e with f of the configuration and e ~ N(0, σ²); y is the logarithm of the metric where all values are positive.
σ is unknown: it has a prior relative to how much configurations differ, and repeated runs of any configuration teach it. A metric that
never varied is thereby known not to vary, and one value on the right side of the limit is then enough. f has the prior t₄(m, s) of the
model that predicts it from all other configurations, so that one lucky run is not taken at its word.

t₄ is a mixture of normal distributions, so with σ on a grid every integral is a sum of normal ones.

>>> once, twice = (chance_to_keep(Constraint("size", 100.0), [96.0] * count, [], [80.0, 96.0, 120.0]) for count in (1, 2))
>>> 0.85 < once < twice > 0.98
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import gammaincinv, ndtr

from lynceus.models.distribution import LogNormal, Normal
from lynceus.models.formula_moments import spread
from lynceus.problem.objective import Constraint
from lynceus.space.column import FloatArray
from lynceus.trial.outcome import End, Observations

_SPREADS = (0.0005, 2.0)
"""Smallest and largest σ of the grid, in standard deviations between configurations: the smallest stands for none."""
_COUNT = 40
"""Values of σ."""
_NONE = 0.4
"""Probability that runs of a configuration all report the same: sizes and counts often do."""
_LOG_SPREAD = (-2.6, 1.1)
"""Mean and std of ln σ where they do not: from 1 % to 40 % of what configurations differ, 7 % in the middle."""
_SHARPEST = 0.02
"""The model is not believed to predict a metric better than this, in the unit of σ."""
_REACH = 6.0
"""Where runs do not differ, a value this many of the smallest σ beyond the limit still keeps it: a limit may be met exactly."""
_TAILS, _PARTS = 4.0, 12
"""Degrees of freedom of the prior of f, and the normal distributions that stand for it."""
_PRECISIONS: FloatArray = gammaincinv(_TAILS / 2, (np.arange(_PARTS) + 0.5) / _PARTS) / (_TAILS / 2)


def chance_to_keep(
    constraint: Constraint,
    own: Sequence[float],
    others: Iterable[Sequence[float]],
    typical: Sequence[float],
    predicted: Normal | LogNormal | None = None,
) -> float:
    """P(the next run of a configuration keeps the limit), after it reported `own` and other configurations `others`.

    `typical` is one value for each configuration that ran, `predicted` what the model predicts from all others.
    """
    if not own:
        raise ValueError(f"a configuration that never reported {constraint.metric} has no chance to be told")
    mine, bound, levels = np.asarray(own, dtype=float), constraint.bound, np.asarray(typical, dtype=float)
    repeated = [np.asarray(each, dtype=float) for each in others]
    if bound > 0 and all((each > 0).all() for each in (mine, levels, *repeated)):
        if isinstance(predicted, Normal):
            middle = max(float(predicted.mean), float(min(mine.min(), levels.min(initial=math.inf))))
            predicted = LogNormal(math.log(middle), float(predicted.std) / middle)
        mine, levels, bound = np.log(mine), np.log(levels), math.log(bound)
        repeated = [np.log(each) for each in repeated]
        unit = min(_spread(levels) or 1.0, 1.0)
    else:
        if isinstance(predicted, LogNormal):
            predicted = Normal(float(predicted.expectation()), float(spread(predicted)))
        unit = _spread(levels) or max(float(np.abs(mine).max()), abs(bound)) or 1.0
    side = (-1.0 if constraint.at_least else 1.0) / unit
    prior = None
    if predicted is not None:
        prior = side * (float(predicted.mean) - bound), max(float(predicted.std) / unit, _SHARPEST)
    return _below_zero(side * (mine - bound), [each / unit for each in repeated], prior)


def _below_zero(own: FloatArray, others: Iterable[FloatArray], prior: tuple[float, float] | None) -> float:
    """P(the next value is at most 0)."""
    sigma = np.geomspace(*_SPREADS, _COUNT)[:, np.newaxis]
    variance, middle = np.square(sigma), float(own.mean())
    log_weight = _log_prior(sigma) + sum((_log_within(each, sigma) for each in others), _log_within(own, sigma))
    place, doubt = np.full_like(sigma, middle), variance / len(own)
    if prior is not None:
        width = prior[1] ** 2 / _PRECISIONS
        total = width + doubt
        log_weight = log_weight - 0.5 * np.square(middle - prior[0]) / total - 0.5 * np.log(total)
        place, doubt = (width * middle + doubt * prior[0]) / total, width * doubt / total
    weight = np.exp(log_weight - log_weight.max())
    # Where runs do not differ, one that kept the limit exactly keeps it again.
    slack = np.where(sigma == sigma[0], _REACH * sigma, 0.0)
    return float((weight * ndtr((slack - place) / np.sqrt(doubt + variance))).sum() / weight.sum())


def _log_prior(sigma: FloatArray) -> FloatArray:
    raw = np.exp(-0.5 * np.square((np.log(sigma) - _LOG_SPREAD[0]) / _LOG_SPREAD[1]))
    prior = (1 - _NONE) * raw / raw.sum()
    prior[0] += _NONE
    return np.asarray(np.log(prior))


def _log_within(values: FloatArray, sigma: FloatArray) -> FloatArray:
    """ln of the likelihood of how the values of one configuration differ among themselves, whatever its typical one."""
    squares = float(np.square(values - values.mean()).sum())
    return np.asarray(-(len(values) - 1) * np.log(sigma) - 0.5 * squares / np.square(sigma))


def _spread(levels: FloatArray) -> float:
    return float(levels.std(ddof=1)) if len(levels) > 1 else 0.0


def reported_by_row(observations: Observations, metric: str) -> dict[int, list[float]]:
    """The finite values of a metric that the finished runs of each configuration reported."""
    found: dict[int, list[float]] = {}
    for seen in observations:
        value = seen.outcome.metrics.get(metric, math.nan)
        if seen.outcome.end is End.FINISHED and math.isfinite(value):
            found.setdefault(seen.row, []).append(value)
    return found
