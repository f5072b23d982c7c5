"""Covariances between candidates: Matérn with one length per numeric feature, a Hamming part for categories.

    k(x, x') = signal · m(s) · Π_c e^(-w_c [x_c ≠ x'_c]) + constant + slope · t(x) t(x'),   s² = 2ν Σ_j (x_j - x'_j)²/ℓ_j²
    m(s) = (1 + s + s²/3) e^(-s) for smooth functions (ν = 5/2),   m(s) = e^(-s) for rough ones (ν = 1/2)

(Rasmussen and Williams 2006, eq. 4.17, 4.18 and 2.38: an unknown mean and an unknown slope along one trend t are part of the
prior). Numeric features are scaled to the unit range of the table first. Everything is evaluated for h hyper-parameter
vectors at once: the gaps between rows are computed once and multiplied with all vectors in one matrix product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from lynceus.space.column import FloatArray, IntArray

KINDS = ("numeric", "log", "categorical")
JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""Fractions of the mean diagonal that are added, in turn, until a matrix has a Cholesky factor."""


@dataclass(frozen=True, eq=False, slots=True)
class Inputs:
    """The candidate table as inputs of the kernel."""

    numeric: FloatArray
    """Numeric features in [0, 1], `[q, dn]`."""
    categorical: FloatArray
    """Codes of categories, only compared for equality, `[q, dc]`."""
    trend: FloatArray
    """A number along which the function may rise or fall linearly, `[q]`; all zero: no trend."""

    @classmethod
    def of(cls, features: FloatArray, kinds: Sequence[str], trend: FloatArray | None = None) -> "Inputs":
        """Sort the columns of `features [q,d]` by kind ("numeric", "log", "categorical") and scale them.

        >>> Inputs.of(np.array([[1.0, 7.0], [3.0, 9.0]]), ["log", "categorical"]).numeric
        array([[0.],
               [1.]])
        """
        unknown = set(kinds) - set(KINDS)
        if features.ndim != 2 or features.shape[1] != len(kinds) or unknown:
            raise ValueError(
                f"got features of shape {features.shape} with kinds {list(kinds)}; expected [q, d] and d kinds among {KINDS}."
            )
        is_category = np.array([kind == "categorical" for kind in kinds], dtype=bool)
        numeric = features[:, ~is_category].astype(np.float64)
        low = numeric.min(axis=0, initial=np.inf)
        span = numeric.max(axis=0, initial=-np.inf) - low
        scaled = (numeric - low) / np.where(span > 0.0, span, 1.0)
        trend = np.zeros(len(features)) if trend is None else np.asarray(trend, dtype=np.float64)
        return cls(scaled, features[:, is_category].astype(np.float64), trend)

    def rounded(self) -> "Inputs":
        """The same in single precision."""
        return Inputs(rounded(self.numeric), rounded(self.categorical), rounded(self.trend))

    def gaps(self, left: IntArray, right: IntArray) -> FloatArray:
        """Squared distance per numeric feature, inequality per category, product of trends, `[d + 1, ...]`.

        The rows broadcast against each other: `gaps(rows[:, None], others)` is a matrix of gaps per feature.
        """
        numeric, categorical = self.numeric.T, self.categorical.T
        shape = (len(numeric) + len(categorical) + 1, *np.broadcast_shapes(left.shape, right.shape))
        gaps = np.empty(shape, dtype=self.numeric.dtype)
        for gap, feature in zip(gaps, numeric, strict=False):
            np.subtract(feature[left], feature[right], out=gap)
            np.square(gap, out=gap)
        for gap, feature in zip(gaps[len(numeric) : -1], categorical, strict=True):
            np.not_equal(feature[left], feature[right], out=gap)
        np.multiply(self.trend[left], self.trend[right], out=gaps[-1])
        return gaps


@dataclass(frozen=True, eq=False, slots=True)
class Hyper:
    """Hyper-parameter vectors, h at a time, in units of the standardised target."""

    roughness: FloatArray
    """2ν/ℓ² of each numeric feature, `[h, dn]`."""
    unlikeness: FloatArray
    """w of each category, `[h, dc]`."""
    signal: FloatArray
    """Variance of the function, `[h]`."""
    noise: FloatArray
    """Variance of one measurement, `[h]`."""
    constant: float
    """Prior variance of the unknown mean of the function."""
    slope: float = 0.0
    """Prior variance of the unknown slope along the trend."""
    smooth: bool = True
    """ν = 5/2, else ν = 1/2."""

    @classmethod
    def of_logs(
        cls, theta: FloatArray, numeric: int, constant: float, slope: float = 0.0, *, smooth: bool = True
    ) -> "Hyper":
        """From vectors (ln ℓ…, ln w…, ln signal, ln noise) `[h, d + 2]`."""
        return cls(
            (5.0 if smooth else 1.0) * np.exp(-2.0 * theta[:, :numeric]),
            np.exp(theta[:, numeric:-2]),
            np.exp(theta[:, -2]),
            np.exp(theta[:, -1]),
            constant,
            slope,
            smooth,
        )

    def __len__(self) -> int:
        return len(self.signal)

    def only(self, which: slice) -> "Hyper":
        """Some of the vectors."""
        return replace(
            self,
            roughness=self.roughness[which],
            unlikeness=self.unlikeness[which],
            signal=self.signal[which],
            noise=self.noise[which],
        )

    def rounded(self) -> "Hyper":
        """The same in single precision."""
        return replace(
            self,
            roughness=rounded(self.roughness),
            unlikeness=rounded(self.unlikeness),
            signal=rounded(self.signal),
            noise=rounded(self.noise),
        )

    def variance(self, trend: FloatArray) -> FloatArray:
        """k(x, x) of rows with the given trend `[c]`, `[h, c]`."""
        return np.asarray((self.signal + self.constant)[:, np.newaxis] + self.slope * np.square(trend))

    def covariance(self, gaps: FloatArray) -> FloatArray:
        """k between the rows whose `gaps [d + 1, ...]` are given, `[h, ...]`."""
        numeric = self.roughness.shape[1]
        shape = (len(self), *gaps.shape[1:])
        flat = gaps.reshape(len(gaps), int(np.prod(gaps.shape[1:])))
        square = self.roughness @ flat[:numeric]
        s = np.sqrt(square)
        polynomial = square
        if self.smooth:
            polynomial *= 1.0 / 3.0
            polynomial += s
            polynomial += 1.0
        s += self.unlikeness @ flat[numeric:-1]
        np.negative(s, out=s)
        np.exp(s, out=s)
        if self.smooth:
            s *= polynomial
        s *= self.signal[:, np.newaxis]
        s += self.constant
        if self.slope:
            s += self.slope * flat[-1]
        return s.reshape(shape)


def rounded(numbers: FloatArray) -> FloatArray:
    """The same numbers in single precision."""
    return cast("FloatArray", numbers.astype(np.float32))


def lower_factor(matrices: FloatArray) -> FloatArray:
    """L of each matrix = L Lᵀ in `[..., n, n]`, of which only the lower triangle is read.

    A singular matrix gets the smallest jitter that makes it regular; the others are not changed.
    """
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        if matrices.ndim > 2:
            return np.stack([lower_factor(matrix) for matrix in matrices])
        return _jittered(matrices)


def inverse_lower(factors: FloatArray) -> FloatArray:
    """Inverses of lower triangular matrices `[..., n, n]`, by halves: matrix products instead of n³ eliminations."""
    size = factors.shape[-1]
    if size <= 8:
        return np.tril(np.linalg.inv(factors))
    half = size // 2
    inverse = np.zeros_like(factors)
    first = inverse_lower(factors[..., :half, :half])
    last = inverse_lower(factors[..., half:, half:])
    inverse[..., :half, :half], inverse[..., half:, half:] = first, last
    inverse[..., half:, :half] = -last @ (factors[..., half:, :half] @ first)
    return inverse


def _jittered(matrix: FloatArray) -> FloatArray:
    typical = max(float(np.mean(np.diagonal(matrix))), 1e-12)
    for jitter in JITTERS[1:]:
        try:
            return np.asarray(np.linalg.cholesky(matrix + jitter * typical * np.eye(len(matrix))))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.maximum(np.diagonal(matrix), 1e-12)))
