"""Whether the time of a configuration changed, tested after every run.

For every run s at which a change may have begun, the regression is extended by a step [run ≥ s] or a ramp (run − s)⁺, and its coefficient
is tested against 0 (the change-point model of Hawkins, Qiu and Kang 2003 for unknown mean and variance, with regressors). The largest
likelihood ratio over s is compared with a threshold (the generalised likelihood ratio of Siegmund and Venkatraman 1995), which is chosen
for a rate of false alarms on synthetic runs (`lynceus lab lives detection`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from lynceus.recurring.time_model import NOISE, NOISE_RUNS, TimeFit
from lynceus.space.column import FloatArray

THRESHOLD = 7.5
"""Likelihood ratio (its logarithm) of an alarm."""
ACT_THRESHOLD = 16.0
"""The same of a change that may be acted upon, tested again with every run since: an alarm is a message, a change of the job is not."""
SPREAD_THRESHOLD = 10.0
"""The same for rising variance."""
FIRST_RUNS = 10
"""Runs before the first alarm: fewer do not tell what is usual."""
_BEFORE = 8
"""Runs of the old regime that a change needs."""
_STEP_LAGS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 19, 24, 30, 40, 55, 75, 100)
_RAMP_LAGS = (10, 16, 25, 40, 65, 100)
"""How many runs ago a change may have begun: all of them would find little more, and raise more false alarms."""
_SPREAD_WINDOWS = (8, 12, 16, 24, 32)
_LEAST_LEFT = 0.25
"""A change explains at most three quarters of the sum of squares: residuals are clipped, so that a sum of few of them is not exact."""
_LEAST_FREE = 0.02
"""A change of which less than this share differs from what the size explains cannot be told apart from it."""
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
    longest = n - since - _BEFORE
    steps, ramps = [lag for lag in _STEP_LAGS if lag <= longest], [lag for lag in _RAMP_LAGS if lag <= longest]
    if n < FIRST_RUNS or not steps:
        return None
    best = _best_of(fitted, steps, ramps)
    if best.ratio < THRESHOLD:
        return None
    lags = range(max(2, round(0.7 * (n - best.start))), min(longest, round(1.4 * (n - best.start)) + 1) + 1)
    near = list(lags) or steps
    return _best_of(fitted, near, []) if best.kind == "step" else _best_of(fitted, [], near)


def _best_of(fitted: TimeFit, step_lags: Sequence[int], ramp_lags: Sequence[int]) -> FoundChange:
    """The most likely of the steps and ramps that began so many runs ago."""
    n = len(fitted.residuals)
    lags = np.array([*step_lags, *ramp_lags])
    age = np.arange(n)[None, :] - (n - lags)[:, None] + 1.0
    changes = np.where(np.arange(len(lags))[:, None] < len(step_lags), (age > 0).astype(float), np.maximum(age, 0.0))
    ratio, size = _likelihood_ratios(fitted, changes)
    shift = size * changes[:, -1]
    best = int(np.argmax(np.where(np.abs(shift) < SMALLEST, -1.0, ratio)))
    kind = "step" if best < len(step_lags) else "drift"
    found = float(ratio[best]) if abs(shift[best]) >= SMALLEST else 0.0
    return FoundChange(kind, n - int(lags[best]), float(shift[best]), found)


def _likelihood_ratios(fitted: TimeFit, changes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln likelihood ratio and coefficient of every added regressor `[k, n]` → `[k]`, `[k]`."""
    along = changes @ fitted.inputs  # [k, p]
    whole = (changes**2).sum(axis=1)
    free = whole - np.einsum("kp,pq,kq->k", along, fitted.covariance, along)
    told_apart = free > _LEAST_FREE * whole
    free = np.where(told_apart, free, whole)
    part = changes @ fitted.residuals
    total = NOISE_RUNS * NOISE**2 + float(fitted.residuals @ fitted.residuals)
    df = max(NOISE_RUNS + len(fitted.residuals) - fitted.inputs.shape[1] - 1.0, 1.0)
    left = np.maximum(total - part**2 / free, _LEAST_LEFT * total)
    t = np.abs(part) / np.sqrt(free * left / df)
    score = -ndtri(np.maximum(stdtr(df, -t), 1e-300))  # the same probability under a normal distribution
    return np.where(told_apart, np.maximum(score, 0.0) ** 2 / 2, 0.0), changes @ fitted.raw / free


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
