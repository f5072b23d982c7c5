"""Hyper-parameters are averaged, not optimized: draws from the prior, weighted by their marginal likelihood.

With three observations the likelihood of a length scale is almost flat, and its maximum overfits. So h vectors are drawn
from the prior, weighted by the marginal likelihood (importance sampling), a normal proposal is fitted to the weighted
draws, and the step is repeated (adaptive importance sampling; Cappé et al. 2004, "Population Monte Carlo"). All draws
of all rounds keep the weight prior · likelihood / mixture of the proposals that could have made them. In the end a few
are kept by systematic resampling, so that predictions on large tables stay cheap.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from lynceus.space.column import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class Settings:
    """The prior of the standardised target and how thoroughly hyper-parameters are averaged."""

    log_length: tuple[float, float] = (0.0, 1.0)
    """Mean and std of ln ℓ, ℓ in ranges of a feature; ½ ln dn is added to the mean, because distances grow with the
    root of the number of features (Hvarfner et al. 2024, "Vanilla Bayesian optimization performs great")."""
    log_unlikeness: tuple[float, float] = (-1.2, 1.0)
    """Mean and std of ln w, where e^-w is the correlation left between two categories."""
    log_signal: tuple[float, float] = (0.5, 0.7)
    """Mean and std of the logarithm of the function's variance."""
    log_noise: tuple[float, float] = (-3.5, 1.0)
    """Mean and std of the logarithm of a measurement's variance."""
    constant: float = 1.0
    """Prior variance of the function's mean."""
    smooth: bool = True
    """Matérn 5/2, whose functions can be differentiated twice, or Matérn 1/2, whose functions have cliffs."""
    slope: float = 0.0
    """Prior std of the slope along the trend, in units of target per unit of trend; 0: no trend."""
    spread: float | None = 1.0
    """Typical std of the target over a table, known beforehand; it counts like two more observations when the
    target is standardised. 1 suits natural logarithms of times and costs; None: unknown unit, the sample's own std."""
    draws: int = 64
    """Vectors per round."""
    rounds: int = 2
    """The first round draws from the prior, each further one from the proposal fitted to the rounds before."""
    kept: int = 16
    """Vectors kept for predictions."""

    def __post_init__(self) -> None:
        for name in ("log_length", "log_unlikeness", "log_signal", "log_noise"):
            if not getattr(self, name)[1] > 0.0:
                raise ValueError(f"{name} must have a std above 0, got {getattr(self, name)}.")
        for name in ("draws", "rounds", "kept"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}.")
        if self.constant < 0.0 or (self.spread is not None and not self.spread > 0.0):
            raise ValueError(
                f"constant must be 0 or more and spread above 0 or None, got {self.constant} and {self.spread}."
            )


@dataclass(frozen=True, eq=False, slots=True)
class NormalVector:
    """A normal distribution over vectors of t numbers."""

    mean: FloatArray
    """`[t]`."""
    factor: FloatArray
    """Lower Cholesky factor of the covariance, `[t, t]`."""

    def draw(self, count: int, generator: np.random.Generator) -> FloatArray:
        """`[count, t]` draws that are stratified in every standardised direction (a Latin hypercube)."""
        strata = np.argsort(generator.random((len(self.mean), count)), axis=1).T
        uniform = (strata + generator.random(strata.shape)) / count
        return np.asarray(self.mean + ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12)) @ self.factor.T)

    def log_density(self, theta: FloatArray) -> FloatArray:
        """`[h]` for vectors `[h, t]`."""
        z = np.linalg.solve(self.factor, (theta - self.mean).T)
        log_volume = np.log(np.diagonal(self.factor)).sum() + 0.5 * len(self.mean) * _LOG_2PI
        return np.asarray(-0.5 * np.square(z).sum(axis=0) - log_volume)


def prior(settings: Settings, numeric: int, categorical: int) -> NormalVector:
    """The prior of (ln ℓ…, ln w…, ln signal, ln noise)."""
    length, spread = settings.log_length
    lengths = (length + 0.5 * np.log(max(numeric, 1)), spread)
    pairs = [lengths] * numeric + [settings.log_unlikeness] * categorical + [settings.log_signal, settings.log_noise]
    mean, std = np.array(pairs, dtype=np.float64).T
    return NormalVector(mean, np.diag(std))


def weighted_draws(
    before: NormalVector,
    log_likelihood: Callable[[FloatArray], FloatArray],
    settings: Settings,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Vectors `[h, t]` and weights `[h]` (sum 1) that represent the posterior, h <= settings.kept."""
    size = len(before.mean)
    theta, log_target = np.empty((0, size)), np.empty(0)
    proposals = [before]
    for turn in range(settings.rounds):
        if turn > 0:
            log_weights = tempered(log_target - _log_mixture(proposals, theta), float(max(size, 10)))
            proposals.append(_fitted(theta, weights_of(log_weights), before))
        new = proposals[-1].draw(settings.draws, generator)
        theta = np.concatenate([theta, new])
        log_target = np.concatenate([log_target, before.log_density(new) + log_likelihood(new)])
    weights = weights_of(tempered(log_target - _log_mixture(proposals, theta), 3.0))
    return _resampled(theta, weights, settings.kept, generator)


def weights_of(logs: FloatArray) -> FloatArray:
    """Weights that sum to 1, along the last axis."""
    raw = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(raw / raw.sum(axis=-1, keepdims=True))


def tempered(log_weights: FloatArray, least: float) -> FloatArray:
    """The weights to the largest power <= 1 that leaves an effective sample size 1/Σw² of `least`, if one does."""
    log_weights = np.where(np.isfinite(log_weights), log_weights, -1e300)
    if _effective(log_weights) >= least:
        return log_weights
    low, high = 0.0, 1.0
    for _ in range(12):
        power = 0.5 * (low + high)
        low, high = (power, high) if _effective(power * log_weights) >= least else (low, power)
    return low * log_weights


def _effective(log_weights: FloatArray) -> float:
    return float(1.0 / np.square(weights_of(log_weights)).sum())


def _log_mixture(proposals: list[NormalVector], theta: FloatArray) -> FloatArray:
    """ln of the equal mixture of the proposals, up to a constant (every round drew the same number)."""
    return np.asarray(np.logaddexp.reduce([proposal.log_density(theta) for proposal in proposals], axis=0))


def _fitted(theta: FloatArray, weights: FloatArray, before: NormalVector) -> NormalVector:
    """A normal with the weighted moments; correlations are damped and a fraction of the prior's width is added."""
    mean = weights @ theta
    centred = theta - mean
    covariance = centred.T @ (centred * weights[:, np.newaxis])
    variance = np.diagonal(covariance) * 0.3 + np.square(0.15 * np.diagonal(before.factor))
    return NormalVector(mean, np.asarray(np.linalg.cholesky(0.7 * covariance + np.diag(variance)), dtype=np.float64))


def _resampled(
    theta: FloatArray, weights: FloatArray, kept: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Systematic resampling; a vector that is drawn more than once is kept once with a multiple weight."""
    order = np.argsort(-weights, kind="stable")
    marks = (np.arange(kept) + generator.random()) / kept
    hit = np.minimum(np.searchsorted(np.cumsum(weights[order]), marks), len(order) - 1)
    chosen, counts = np.unique(order[hit], return_counts=True)
    return theta[chosen], counts / kept
