"""The Gittins index of Pandora's box: the value at which one more run just pays for itself.

Weitzman (1979) opens the box with the smallest g that solves E[(g - Y)⁺] = cost and stops when no g is below the best
value so far; Xie et al. (2024, "Cost-aware Bayesian optimization via the Pandora's box Gittins index") use it as an
acquisition function with cost scaled by λ.

The left side is convex and increasing in g, and its logarithm is concave in z (normal) or in ln g (log-normal): an
integral of a log-concave function. Newton's method on the logarithm therefore steps to the left of the root at most
once and then climbs to it without ever passing, so no bracket is needed.
"""

from collections.abc import Callable

import numpy as np

from lynceus.models.distribution import LogNormal, Normal, Numbers
from lynceus.space.column import FloatArray

_STEPS = 60
_TOLERANCE = 1e-12
_PLAIN = 40.0
"""Beyond z = 40 the normal put is strike - mean to the last bit."""
_NARROW = 1e-6
"""Below this std of the logarithm a log-normal strike is a normal one up to about std² = 1e-12."""


def gittins_index(
    prediction: Normal | LogNormal, cost: Numbers, weight: Numbers = 1.0, ceiling: Numbers | None = None
) -> FloatArray:
    """The g with E[(g - Y)⁺] = weight · cost; run the smallest, stop when none is below the best so far.

    `weight` is λ, the value of a dollar of search in units of Y: 1/λ is the number of future runs that will profit.
    With a `ceiling` only Y <= ceiling counts: E[(g - Y)⁺ 1{Y <= ceiling}] = weight · cost. Above the ceiling the left
    side is linear, put(ceiling) + (g - ceiling) P(Y <= ceiling), so g follows without iteration, and is infinite where
    the ceiling cannot be met.

    >>> float(gittins_index(Normal(3.0, 0.0), cost=0.5))
    3.5
    >>> float(gittins_index(Normal(3.0, 1.0), cost=0.5).round(4))
    3.188
    """
    price = np.asarray(np.multiply(weight, cost))
    if not np.all(price >= 0.0):
        raise ValueError(f"weight · cost must be 0 or more and not NaN, its smallest value is {np.min(price)}.")
    solve = _normal_strike if isinstance(prediction, Normal) else _lognormal_strike
    index = solve(prediction.mean, prediction.std, price)
    if ceiling is None:
        return index
    with np.errstate(divide="ignore", invalid="ignore"):
        above = ceiling + (price - prediction.put(ceiling)) / prediction.cdf(ceiling)
        above = np.where(np.equal(prediction.cdf(ceiling), 0.0), np.inf, above)
    return np.where(index <= ceiling, index, above)


def _normal_strike(mean: Numbers, std: Numbers, price: FloatArray) -> FloatArray:
    """The strike at which the normal put equals `price`: h(z) = price/std, where h is the put of the standard normal."""
    standard = Normal(0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        put = np.where(np.equal(std, 0.0), np.inf, np.divide(price, std))
        bounded = np.clip(put, 1e-300, _PLAIN)
        z = _climb(np.log(bounded), standard.log_put, standard.log_cdf, _start(bounded))
        strike = np.where(put == 0.0, -np.inf, mean + std * z)
    return np.where(put >= _PLAIN, mean + price, strike)


def _lognormal_strike(mean: Numbers, std: Numbers, price: FloatArray) -> FloatArray:
    """The strike at which the log-normal put equals `price`, solved for ln strike after dividing everything by e^mean."""
    narrow = np.less(std, _NARROW)
    centred = LogNormal(0.0, np.where(narrow, 1.0, std))
    unit = np.exp(mean)
    put = np.clip(np.divide(price, unit), 1e-300, None)
    # The strike is at least the put, and for z < 0 the put is below std · h(z): both give points left of the root.
    start = np.maximum(np.log(put), centred.std * np.minimum(_start(put / centred.std), 0.0))
    log_strike = _climb(
        np.log(put),
        lambda x: centred.log_put(np.exp(x)),
        lambda x: x + centred.log_cdf(np.exp(x)),
        start,
    )
    wide = np.where(price == 0.0, 0.0, unit * np.exp(log_strike))
    return np.where(narrow, np.maximum(_normal_strike(unit, unit * std, price), price), wide)


def _start(put: FloatArray) -> FloatArray:
    """A z near the root of h(z) = put: h(z) ≈ z on the right, h(z) ≈ φ(z)/z² on the left."""
    return np.where(put > 0.4, put, -np.sqrt(np.maximum(-2.0 * np.log(put) - 1.84, 0.0)))


def _climb(
    target: FloatArray,
    value: Callable[[FloatArray], FloatArray],
    log_rate: Callable[[FloatArray], FloatArray],
    start: FloatArray,
) -> FloatArray:
    """Solve value(x) = target by Newton's method, where value is concave and ln(value' · e^value) is `log_rate`."""
    x = start
    for _ in range(_STEPS):
        level = value(x)
        step = (target - level) * np.exp(level - log_rate(x))
        x = x + step
        if np.all(np.abs(step) <= _TOLERANCE * (1.0 + np.abs(x))):
            break
    return x
