"""Two families of predictive distributions, and the closed forms that acquisition functions need.

`Normal` describes the quantity by mean and std, `LogNormal` its natural logarithm. Both have the same methods, elementwise
on arrays of any shape that broadcast together. Both stay monotone and finite far in the tails, where the textbook formulas
underflow or cancel.

    z        (x - mean) / std, for the log-normal (ln x - mean) / std
    φ, Φ     density and distribution function of the standard normal
    put      E[(strike - Y)⁺], called expected improvement in Bayesian optimization; the name is from option pricing
    std = 0  the quantity is known; every formula takes its limit

>>> seconds = LogNormal(mean=np.log([60.0, 600.0]), std=np.array([0.5, 0.5]))
>>> seconds.cdf(300.0).round(3)
array([0.999, 0.083])
>>> seconds.capped_mean(300.0).round(1)
array([ 68. , 295.3])
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from lynceus.space.column import BoolArray, FloatArray

Numbers = FloatArray | float

_SQRT_2 = float(np.sqrt(2.0))
_LOG_SQRT_2PI = float(0.5 * np.log(2.0 * np.pi))
_FAR = 100.0
"""From here on 1 - |z| Φ(-|z|)/φ(z) is computed by its asymptotic series: the difference itself would cancel."""


_quiet = np.errstate(all="ignore")
"""Tails overflow and underflow on purpose; `np.where` then selects the branch that is correct there."""


class Distribution(Protocol):
    """A distribution of one quantity: `Normal` or `LogNormal`."""

    def cdf(self, x: Numbers) -> FloatArray:
        """P(Y <= x)."""

    def log_cdf(self, x: Numbers) -> FloatArray:
        """ln P(Y <= x), finite where the probability itself underflows."""

    def sf(self, x: Numbers) -> FloatArray:
        """P(Y > x)."""

    def put(self, strike: Numbers) -> FloatArray:
        """E[(strike - Y)⁺]."""

    def log_put(self, strike: Numbers) -> FloatArray:
        """ln E[(strike - Y)⁺], finite where the expectation itself underflows."""

    def call(self, strike: Numbers) -> FloatArray:
        """E[(Y - strike)⁺]: the improvement of a quantity that is maximised."""

    def truncated_put(self, strike: Numbers, ceiling: Numbers) -> FloatArray:
        """E[(strike - Y) 1{Y <= ceiling}]; negative where the ceiling lies far above the strike."""

    def capped_mean(self, cap: Numbers) -> FloatArray:
        """E[min(Y, cap)], the expected time of a run that is stopped at `cap`."""

    def expectation(self) -> FloatArray:
        """E[Y]."""

    def quantile(self, p: Numbers) -> FloatArray:
        """The x with P(Y <= x) = p."""

    def mean_above(self, lower: Numbers) -> FloatArray:
        """E[Y | Y > lower], the truncated mean; never below `lower`."""

    def nodes(self, points: int) -> tuple[FloatArray, FloatArray]:
        """Values `[..., k]` and weights `[k]` (sum 1) of the Gauss-Hermite rule: E[g(Y)] ≈ Σ weights · g(values)."""


@dataclass(frozen=True, eq=False, slots=True)
class Normal:
    """The quantity is normally distributed."""

    mean: Numbers
    """Expected value, in the quantity's unit."""
    std: Numbers
    """Standard deviation, in the quantity's unit; 0: the value is known."""

    def __post_init__(self) -> None:
        _check_std(self.std)

    def cdf(self, x: Numbers) -> FloatArray:
        """P(Y <= x)."""
        return _array(ndtr(_standardised(x, self.mean, self.std)))

    def log_cdf(self, x: Numbers) -> FloatArray:
        """ln P(Y <= x)."""
        return _array(log_ndtr(_standardised(x, self.mean, self.std)))

    def sf(self, x: Numbers) -> FloatArray:
        """P(Y > x)."""
        return _array(ndtr(-_standardised(x, self.mean, self.std)))

    def put(self, strike: Numbers) -> FloatArray:
        """E[(strike - Y)⁺] = (strike - mean) Φ(z) + std φ(z) (Jones et al. 1998, eq. 15)."""
        return np.maximum(self.truncated_put(strike, strike), 0.0)

    def call(self, strike: Numbers) -> FloatArray:
        """E[(Y - strike)⁺] = E[((-strike) - (-Y))⁺]."""
        return Normal(np.negative(self.mean), self.std).put(np.negative(strike))

    @_quiet
    def log_put(self, strike: Numbers) -> FloatArray:
        """ln E[(strike - Y)⁺] (Ament et al. 2023, "Unexpected improvements to expected improvement", eq. 9)."""
        z = _standardised(strike, self.mean, self.std)
        far = np.log(self.std) + _log_h(np.minimum(z, -1.0))
        return _array(np.where(z > -1.0, np.log(self.put(strike)), far))

    @_quiet
    def truncated_put(self, strike: Numbers, ceiling: Numbers) -> FloatArray:
        """E[(strike - Y) 1{Y <= ceiling}] = (strike - mean) Φ(z) + std φ(z) with the z of the ceiling."""
        z = _standardised(ceiling, self.mean, self.std)
        value = np.subtract(strike, self.mean) * ndtr(z) + self.std * _density(z)
        return _array(np.where(z == -np.inf, 0.0, value))

    @_quiet
    def capped_mean(self, cap: Numbers) -> FloatArray:
        """E[min(Y, cap)] = cap - put(cap) = mean - E[(Y - cap)⁺], whichever subtracts the smaller number."""
        z = _standardised(cap, self.mean, self.std)
        excess = Normal(np.negative(self.mean), self.std).put(np.negative(cap))
        return _array(np.where(z > 0.0, self.mean - excess, cap - self.put(cap)))

    def expectation(self) -> FloatArray:
        """E[Y]."""
        return _array(self.mean)

    @_quiet
    def quantile(self, p: Numbers) -> FloatArray:
        """The x with P(Y <= x) = p; where std = 0 the known value, whatever p."""
        return _array(np.where(np.equal(self.std, 0.0), self.mean, self.mean + self.std * ndtri(p)))

    @_quiet
    def mean_above(self, lower: Numbers) -> FloatArray:
        """E[Y | Y > lower] = mean + std φ(z)/Φ(-z); φ/Φ by the scaled complementary error function, never 0/0."""
        z = _standardised(lower, self.mean, self.std)
        above = self.mean + self.std * (np.sqrt(2.0 / np.pi) / erfcx(z / _SQRT_2))
        return _array(np.where(np.isfinite(z), np.maximum(above, lower), np.maximum(self.mean, lower)))

    def nodes(self, points: int) -> tuple[FloatArray, FloatArray]:
        """Values `[..., k]` and weights `[k]` of the Gauss-Hermite rule with k = `points`.

        >>> values, weights = Normal(10.0, 2.0).nodes(3)
        >>> values.round(3), weights.round(3)
        (array([ 6.536, 10.   , 13.464]), array([0.167, 0.667, 0.167]))
        """
        places, weights = _gauss_hermite(points)
        mean, std = np.broadcast_arrays(_array(self.mean), _array(self.std))
        return mean[..., np.newaxis] + std[..., np.newaxis] * places, weights


@dataclass(frozen=True, eq=False, slots=True)
class LogNormal:
    """The natural logarithm of the quantity is normally distributed; the quantity is positive."""

    mean: Numbers
    """Expected value of the logarithm."""
    std: Numbers
    """Standard deviation of the logarithm; 0: the value is known."""

    def __post_init__(self) -> None:
        _check_std(self.std)

    def cdf(self, x: Numbers) -> FloatArray:
        """P(Y <= x); 0 for x <= 0."""
        return _array(ndtr(self._z(x)))

    def log_cdf(self, x: Numbers) -> FloatArray:
        """ln P(Y <= x); -inf for x <= 0."""
        return _array(log_ndtr(self._z(x)))

    def sf(self, x: Numbers) -> FloatArray:
        """P(Y > x)."""
        return _array(ndtr(-self._z(x)))

    @_quiet
    def put(self, strike: Numbers) -> FloatArray:
        """E[(strike - Y)⁺] = strike Φ(z) - e^(mean + std²/2) Φ(z - std) (Black and Scholes 1973, eq. 13 and 18)."""
        z = self._z(strike)
        near = strike * ndtr(z) - self._mean_below(z)
        far = strike * ndtr(np.minimum(z, 0.0)) * self._share(z)
        value = np.where((z > 0.0) & ~self._narrow(z), near, far)
        return _array(np.where(np.equal(strike, np.inf), np.inf, np.where(z == -np.inf, 0.0, np.maximum(value, 0.0))))

    @_quiet
    def call(self, strike: Numbers) -> FloatArray:
        """E[(Y - strike)⁺] = e^(mean + std²/2) Φ(std - z) - strike Φ(-z)."""
        z = self._z(strike)
        above = np.exp(self.mean + 0.5 * np.square(self.std) + log_ndtr(self.std - z))
        value = np.where(z == np.inf, 0.0, above - strike * ndtr(-z))
        return _array(np.maximum(value, 0.0))

    @_quiet
    def log_put(self, strike: Numbers) -> FloatArray:
        """ln E[(strike - Y)⁺]; -inf for strike <= 0."""
        z = self._z(strike)
        far = self.mean + self.std * z + log_ndtr(z) + np.log(self._share(z))
        return _array(np.where((z > 0.0) | (z == -np.inf), np.log(self.put(strike)), far))

    @_quiet
    def truncated_put(self, strike: Numbers, ceiling: Numbers) -> FloatArray:
        """E[(strike - Y) 1{Y <= ceiling}] = put(ceiling) + (strike - ceiling) P(Y <= ceiling)."""
        z = self._z(ceiling)
        near = strike * ndtr(z) - self._mean_below(z)
        far = self.put(ceiling) + np.subtract(strike, ceiling) * ndtr(z)
        return _array(np.where(z > 0.0, near, np.where(z == -np.inf, 0.0, far)))

    @_quiet
    def capped_mean(self, cap: Numbers) -> FloatArray:
        """E[min(Y, cap)] = e^(mean + std²/2) Φ(z - std) + cap Φ(-z); both terms are positive and do not cancel."""
        z = self._z(cap)
        beyond = np.where(z == np.inf, 0.0, cap * ndtr(-z))
        return _array(self._mean_below(z) + beyond)

    def expectation(self) -> FloatArray:
        """E[Y] = e^(mean + std²/2)."""
        return _array(np.exp(self.mean + 0.5 * np.square(self.std)))

    def quantile(self, p: Numbers) -> FloatArray:
        """The x with P(Y <= x) = p; where std = 0 the known value, whatever p."""
        return _array(np.exp(Normal(self.mean, self.std).quantile(p)))

    @_quiet
    def mean_above(self, lower: Numbers) -> FloatArray:
        """E[Y | Y > lower] = e^(mean + std²/2) Φ(std - z)/Φ(-z).

        Far above the bulk both Φ underflow; there the equal form lower · erfcx((z - std)/√2)/erfcx(z/√2) is used.
        """
        z = self._z(lower)
        log_near = self.mean + 0.5 * np.square(self.std) + log_ndtr(self.std - z) - log_ndtr(-z)
        far = lower * (erfcx((z - self.std) / _SQRT_2) / erfcx(z / _SQRT_2))
        above = np.where((z > 0.0) & (z - self.std > -_FAR / 4.0), far, np.exp(log_near))
        above = np.where(np.equal(self.std, 0.0), np.exp(self.mean), np.where(z == np.inf, lower, above))
        return _array(np.maximum(above, lower))

    def nodes(self, points: int) -> tuple[FloatArray, FloatArray]:
        """Values `[..., k]` and weights `[k]` of the Gauss-Hermite rule on the logarithm."""
        values, weights = Normal(self.mean, self.std).nodes(points)
        return np.exp(values), weights

    @_quiet
    def _z(self, x: Numbers) -> FloatArray:
        return _standardised(np.log(np.maximum(x, 0.0)), self.mean, self.std)

    def _mean_below(self, z: FloatArray) -> FloatArray:
        """E[Y 1{Y <= x}], in one exponential so that a wide std cannot overflow times 0."""
        return _array(np.exp(self.mean + 0.5 * np.square(self.std) + log_ndtr(z - self.std)))

    def _narrow(self, z: FloatArray) -> BoolArray:
        """Where Y is so narrow around the strike that its put is a normal one up to 1e-7, and cancels otherwise."""
        return np.less(np.where(z > 0.0, self.std * np.maximum(z, 1.0), self.std / np.maximum(-z, 1.0)), 1e-7)

    @_quiet
    def _share(self, z: FloatArray) -> FloatArray:
        """put / (strike Φ(min(z, 0))) for z <= 0, and for narrow Y on both sides of the strike.

        1 - E[Y | Y <= strike]/strike = 1 - erfcx((std - z)/√2)/erfcx(-z/√2); for narrow Y its limit std h(z)/Φ(z).
        """
        below = np.minimum(z, 0.0)
        wide = 1.0 - erfcx((self.std - below) / _SQRT_2) / erfcx(-below / _SQRT_2)
        narrow = self.std * np.where(z < -1e4, -1.0 / below, np.exp(_log_h(z) - log_ndtr(below)))
        return _array(np.where(self._narrow(z), narrow, wide))


def _array(x: Any) -> FloatArray:
    return np.asarray(x, dtype=np.float64)


def _check_std(std: Numbers) -> None:
    if not np.all(np.greater_equal(std, 0.0)):
        raise ValueError(f"std must be 0 or more and not NaN, its smallest value is {np.min(std)}.")


@_quiet
def _standardised(x: Numbers, mean: Numbers, std: Numbers) -> FloatArray:
    """(x - mean) / std; where std = 0: +inf from the mean on, -inf below it."""
    distance = _array(np.subtract(x, mean))
    return _array(np.where(np.equal(std, 0.0), np.where(distance >= 0.0, np.inf, -np.inf), distance / std))


@_quiet
def _density(z: FloatArray) -> FloatArray:
    """φ(z)."""
    return _array(np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI))


@_quiet
def _log_h(z: FloatArray) -> FloatArray:
    """ln h(z), h(z) = φ(z) + z Φ(z) (Ament et al. 2023, eq. 9), for any z; -inf at z = -inf."""
    near = np.log(_density(z) + z * ndtr(z))
    away = np.clip(-z, 1.0, _FAR)
    tail = np.log1p(-np.sqrt(np.pi / 2.0) * away * erfcx(away / _SQRT_2))
    u = 1.0 / np.square(np.maximum(-z, _FAR))
    series = np.log(u) + np.log1p(u * (-3.0 + u * (15.0 + u * (-105.0 + 945.0 * u))))
    far = -0.5 * np.square(z) - _LOG_SQRT_2PI + np.where(z > -_FAR, tail, series)
    return np.where(z > -1.0, near, np.where(z == -np.inf, -np.inf, far))


@lru_cache(maxsize=32)
def _gauss_hermite(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of ∫ φ(t) g(t) dt ≈ Σ weights · g(nodes), symmetric, weights summing to 1."""
    if points < 1:
        raise ValueError(f"a quadrature needs at least 1 point, not {points}.")
    places, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    places.setflags(write=False)
    weights.setflags(write=False)
    return places, weights
