"""How long one configuration takes, by the size of its input: a robust Bayesian regression of ln seconds on ln size.

    ln t = level + b·z + c·z² + Σ_j step_j·[run ≥ change_j] + e,   z = ln(size / first size)

The slope has the prior N(1, 0.5²): twice the input takes about twice as long. The curvature has N(0, 0.2²), every step that was found
N(0, 1). Runs that are far off weigh less (Huber 1964), so that one slow run moves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from lynceus.space.column import FloatArray

_SLOPE, _SLOPE_STD = 1.0, 0.5
_CURVATURE_STD = 0.2
_STEP_STD = 1.0
_LEVEL_STD = 100.0
NOISE, NOISE_RUNS = 0.07, 3.0
"""Run-to-run variation that is assumed before runs tell it, and how many runs that assumption is worth."""
_HUBER = 2.0
"""Residuals beyond so many σ weigh less."""
CLIP = 2.5
"""Residuals count at most so many σ."""
_SWEEPS = 6
_TAILS = 8.0
"""Most degrees of freedom of a prediction: single runs are slow more often than a normal distribution says."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one run is expected to take: ln seconds have a Student t distribution."""

    log_s: float
    spread: float
    """Scale of ln seconds: run-to-run variation and what is not known of the mean."""
    df: float = _TAILS
    noise: float = NOISE
    """Run-to-run variation alone."""

    @property
    def seconds(self) -> float:
        """The expected time of a run."""
        return math.exp(self.log_s + min(self.spread, 1.0) ** 2 / 2)

    def quantile(self, score: float) -> float:
        """Seconds so many scales above the typical run."""
        return math.exp(min(self.log_s + score * self.spread, 700.0))

    def late_chance(self, deadline_s: float) -> float:
        """The chance that a run takes longer than the deadline.

        >>> round(Expectation(math.log(100.0), 0.1).late_chance(120.0), 3)
        0.053
        """
        if math.isinf(deadline_s):
            return 0.0
        return float(stdtr(self.df, (self.log_s - math.log(deadline_s)) / self.spread))


@dataclass(frozen=True, eq=False)
class TimeFit:
    """The regression after some runs."""

    inputs: FloatArray
    """`[n, p]`"""
    coefficients: FloatArray
    """`[p]`"""
    covariance: FloatArray
    """In units of σ² `[p, p]`."""
    residuals: FloatArray
    """Clipped, in ln seconds `[n]`."""
    raw: FloatArray
    """Not clipped `[n]`."""
    sigma: float
    df: float

    def expectation(self, inputs: FloatArray) -> Expectation:
        """What a run with these inputs `[p]` is expected to take."""
        variance = float(inputs @ self.covariance @ inputs)
        return Expectation(
            float(inputs @ self.coefficients), self.sigma * math.sqrt(1 + variance), min(self.df, _TAILS), self.sigma
        )


def design(log_sizes: FloatArray | None, changes: Sequence[int], count: int) -> FloatArray:
    """The inputs of `count` runs `[n, p]`: level, z and z² (where sizes are known), and a step per change (the run that it began with)."""
    columns = [np.ones(count)]
    if log_sizes is not None:
        columns += [log_sizes, log_sizes**2]
    runs = np.arange(count)
    columns += [(runs >= change).astype(float) for change in changes]
    return np.stack(columns, axis=1)


def fit(log_s: FloatArray, inputs: FloatArray, sized: bool, weights: FloatArray | None = None) -> TimeFit:
    """The robust posterior of ln seconds `[n]` given the inputs `[n, p]`; `weights [n]` count runs less."""
    p = inputs.shape[1]
    mean, std = np.zeros(p), np.full(p, _STEP_STD)
    std[0] = _LEVEL_STD
    if sized:
        mean[1], std[1], std[2] = _SLOPE, _SLOPE_STD, _CURVATURE_STD
    given = np.ones(len(log_s)) if weights is None else weights
    df = max(float(given.sum()) - 1.0, 0.0)
    sigma, huber = NOISE, np.ones(len(log_s))
    for _ in range(_SWEEPS):
        weighted = inputs * (given * huber)[:, None]
        precision = weighted.T @ inputs + np.diag((sigma / std) ** 2)
        covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        coefficients = covariance @ (weighted.T @ log_s + (sigma / std) ** 2 * mean)
        raw = log_s - inputs @ coefficients
        used = float(np.sum(given) - np.trace(covariance @ (weighted.T @ inputs)))
        before = sigma
        clipped = np.clip(raw, -CLIP * sigma, CLIP * sigma)
        sigma = math.sqrt((NOISE_RUNS * NOISE**2 + float(given @ clipped**2)) / (NOISE_RUNS + max(used, 0.0)))
        huber = np.minimum(1.0, _HUBER * sigma / np.maximum(np.abs(raw), 1e-12))
        if abs(sigma - before) < 1e-3 * before:
            break
    clipped = np.clip(raw, -CLIP * sigma, CLIP * sigma)
    return TimeFit(inputs, coefficients, covariance, clipped, raw, sigma, NOISE_RUNS + max(df, 1.0))
