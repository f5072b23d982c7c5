"""Whether the time of a configuration changed, tested after every run.

For every run s at which a change may have begun, the regression is extended by a step [run ≥ s] or a ramp (run − s)⁺, and its coefficient
is tested against 0 (the change-point model of Hawkins, Qiu and Kang 2003 for unknown mean and variance, with regressors). The largest
likelihood ratio over s is compared with a threshold (the generalised likelihood ratio of Siegmund and Venkatraman 1995), which is chosen
for a rate of false alarms on synthetic runs (`lynceus lab lives calibrate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from lynceus.recurring.time_model import NOISE, NOISE_RUNS, TimeFit
from lynceus.space.column import FloatArray

THRESHOLD = 12.0
"""Likelihood ratio (its logarithm) of an alarm."""
SPREAD_THRESHOLD = 10.0
"""The same for rising variance."""
FIRST_RUNS = 8
"""Runs before the first alarm: fewer do not tell what is usual."""
_BEFORE = 5
"""Runs of the old regime that a change needs."""
_WINDOW = 80
"""How many runs ago a change may have begun."""
_SPREAD_WINDOWS = (8, 12, 16, 24, 32)
SMALLEST = 0.07
"""Changes of ln seconds below this are left to the regression."""


@dataclass(frozen=True, slots=True)
class FoundChange:
    """A change of the usual time."""

    kind: str
    """`step` or `drift`."""
    start: int
    """The run with which it began, by its place among the runs of the configuration."""
    shift: float
    """Change of ln seconds by now."""
    ratio: float
    """Logarithm of the likelihood ratio."""


def find_change(fitted: TimeFit, since: int) -> FoundChange | None:
    """The most likely change that began after run `since`, if it is sure enough; None otherwise."""
    n = len(fitted.residuals)
    first = max(since + _BEFORE, n - _WINDOW)
    if n < FIRST_RUNS or first > n - 2:
        return None
    starts = np.arange(first, n - 1)
    age = np.arange(n)[None, :] - starts[:, None] + 1.0
    steps = (age > 0).astype(float)
    ramps = np.maximum(age, 0.0)
    changes = np.concatenate([steps, ramps])  # [2s, n]
    ratio, size = _likelihood_ratios(fitted, changes)
    shift = size * changes[:, -1]
    ratio[np.abs(shift) < SMALLEST] = 0.0
    best = int(np.argmax(ratio))
    if ratio[best] < THRESHOLD:
        return None
    kind = "step" if best < len(starts) else "drift"
    return FoundChange(kind, int(starts[best % len(starts)]), float(shift[best]), float(ratio[best]))


def _likelihood_ratios(fitted: TimeFit, changes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln likelihood ratio and coefficient of every added regressor `[k, n]` → `[k]`, `[k]`."""
    along = changes @ fitted.inputs  # [k, p]
    free = (changes**2).sum(axis=1) - np.einsum("kp,pq,kq->k", along, fitted.covariance, along)
    free = np.maximum(free, 1e-9)
    part = changes @ fitted.residuals
    total = NOISE_RUNS * NOISE**2 + float(fitted.residuals @ fitted.residuals)
    df = max(NOISE_RUNS + len(fitted.residuals) - fitted.inputs.shape[1] - 1.0, 1.0)
    left = np.maximum(total - part**2 / free, 1e-12 * total)
    t = np.abs(part) / np.sqrt(free * left / df)
    score = -ndtri(np.maximum(stdtr(df, -t), 1e-300))  # the same probability under a normal distribution
    return np.maximum(score, 0.0) ** 2 / 2, part / free


def spread_ratio(residuals: FloatArray) -> tuple[float, float, int]:
    """Whether the last runs vary more than those before: ln likelihood ratio, ratio of the spreads, and how many runs.

    Wilcoxon's rank sum of the absolute residuals: it holds for every distribution of the noise.
    """
    n, found = len(residuals), (0.0, 1.0, 0)
    size = np.abs(residuals)
    ranks = np.empty(n)
    ranks[np.argsort(size, kind="stable")] = np.arange(1, n + 1)
    for last in _SPREAD_WINDOWS:
        before = n - last
        if before < max(last, 12):
            break
        total, mean = float(ranks[before:].sum()), last * (n + 1) / 2
        score = (total - mean) / math.sqrt(last * before * (n + 1) / 12)
        ratio = max(score, 0.0) ** 2 / 2
        if ratio > found[0]:
            typical = float(np.median(size[:before]))
            found = ratio, float(np.median(size[before:])) / max(typical, 1e-9), last
    return found
