"""Observations that are only lower bounds: a run that was stopped took at least this long (Tobit regression).

Expectation propagation replaces the factor P(f + ε > bound) of each such observation by a normal *site* N(f; mean, var), so
that everything after it is ordinary regression. Write C = K + diag(site variances) and P = C⁻¹. Leaving site i out, the rest
predicts f_i with (Rasmussen and Williams 2006, eq. 5.12)

    v₋ = 1/P_ii - var_i,    m₋ = mean_i - (P mean)_i / P_ii,

and matching the moments of the exact factor, with z = (m₋ - bound)/√(v₋ + σ²), r = φ(z)/Φ(z), gives the new site

    δ = v₋ r (z + r)/(v₋ + σ²),    var = v₋ (1 - δ)/δ,    mean = m₋ + √(v₋ + σ²)/(z + r).

The factor is log-concave, so 0 < δ < 1 and every site variance is positive; damping keeps simultaneous updates stable.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr

from lynceus.models.gaussian.packed import systems
from lynceus.space.column import BoolArray, FloatArray

_SWEEPS = 20
_DAMPING = 0.9
_TOLERANCE = 1e-3
"""Relative change of a site's precision, and change of its mean in standard units, that end the sweeps."""
_PRECISION = (1e-8, 1e8)
"""Bounds of a site's precision, in units of the standardised target: so that it neither vanishes nor becomes exact."""


@dataclass(frozen=True, eq=False, slots=True)
class Sites:
    """Normal approximations of n observations under h hyper-parameter vectors."""

    mean: FloatArray
    """`[h, n]`; the observed value where it was measured."""
    variance: FloatArray
    """`[h, n]`; the noise where it was measured."""
    log_scale: FloatArray
    """`[h]`, Σ ln of the factors by which the normal sites differ from the exact factors; part of the evidence."""


def measured(y: FloatArray, noise: FloatArray) -> Sites:
    """Sites of observations `y [n]` that are all exact up to `noise [h]`."""
    shape = (len(noise), len(y))
    return Sites(np.broadcast_to(y, shape), np.broadcast_to(noise[:, np.newaxis], shape), np.zeros(len(noise)))


def propagate(covariance: FloatArray, y: FloatArray, noise: FloatArray, censored: BoolArray) -> Sites:
    """Sites of observations `y [n]` of which those `censored [n]` are lower bounds.

    `covariance [h, n (n + 1) / 2]` holds the packed lower triangles of the members (`lynceus.models.gaussian.packed`).
    """
    start = measured(y, noise)
    if not censored.any():
        return start
    mean, variance = start.mean.copy(), start.variance.copy()
    variance[:, censored] += 1.0
    noise = noise[:, np.newaxis]
    bound = y[censored]
    precision, shifted = 1.0 / variance[:, censored], mean[:, censored] / variance[:, censored]
    for sweep in range(_SWEEPS):
        rest_mean, rest_variance = (part[:, censored] for part in _left_out(covariance, mean, variance))
        z = (rest_mean - bound) / np.sqrt(rest_variance + noise)
        r = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
        share = np.clip(rest_variance * r * (z + r) / (rest_variance + noise), 1e-12, 1.0 - 1e-9)
        new_precision = np.clip(share / (rest_variance * (1.0 - share)), *_PRECISION)
        new_mean = rest_mean + np.sqrt(rest_variance + noise) / np.maximum(z + r, 1e-12)
        step = _DAMPING if sweep else 1.0
        change = np.abs(new_precision / precision - 1.0).max(), np.abs(new_mean - mean[:, censored]).max()
        precision = precision + step * (new_precision - precision)
        shifted = shifted + step * (new_precision * new_mean - shifted)
        variance[:, censored], mean[:, censored] = 1.0 / precision, shifted / precision
        if max(change) < _TOLERANCE:
            break
    return Sites(mean, variance, _log_scale(covariance, mean, variance, bound, noise, censored))


def _left_out(covariance: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The prediction of f at each site from all other sites: mean and variance `[h, n]`."""
    found = systems(covariance, mean, variance, inverse=True)
    return mean - found.solved / found.diagonal, np.maximum(1.0 / found.diagonal - variance, 1e-10)


def _log_scale(
    covariance: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    bound: FloatArray,
    noise: FloatArray,
    censored: BoolArray,
) -> FloatArray:
    """Σ ln Z̃ᵢ = ln Φ(z) + ½ ln 2π(v₋ + var) + (m₋ - mean)²/2(v₋ + var) (Rasmussen and Williams 2006, eq. 3.65)."""
    rest_mean, rest_variance = (part[:, censored] for part in _left_out(covariance, mean, variance))
    z = (rest_mean - bound) / np.sqrt(rest_variance + noise)
    joint = rest_variance + variance[:, censored]
    terms = log_ndtr(z) + 0.5 * np.log(2.0 * np.pi * joint) + 0.5 * np.square(rest_mean - mean[:, censored]) / joint
    return np.asarray(terms.sum(axis=1))
