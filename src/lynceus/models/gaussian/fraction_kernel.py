"""The covariance of Fabolas between runs on different fractions of the data.

    k((x, s), (x', s')) = Matérn 5/2(x, x') · φ(s)ᵀ Uᵀ U φ(s') + φ(s)ᵀ D φ(s') + bend · s² s'²,      U upper triangular, 2 × 2

(Klein et al. 2017, "Fast Bayesian optimization of machine learning hyperparameters on large datasets", eq. 7). With the basis
φ(s) = (1, (1 - s)²) a loss settles as the data grow, with φ(s) = (1, s) a logarithm of cost rises linearly; s is 0 at the
smallest fraction, 1 on all data and logarithmic between. Their process has mean zero; the diagonal D adds an unknown mean over all
configurations and an unknown change of it with s. The line of a log cost need not be straight either: a start-up time makes
it bend upwards, a time limit downwards, for all configurations alike.

A run on few data is short, and what starts it up or schedules it disturbs a short run more than a long one; an accuracy learnt from
few data varies more, too. So the noise of a measurement falls with the data: variance(s) = noise · e^(decay · (1 - s)).

Equivalently, f(x, s) = Σ_j φ_j(s) w_j(x) with correlated processes over x alone (the third, the bend, is the same at every x), so
all computations use the G configurations and never the q pairs (x, s).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lynceus.models.gaussian.kernel import Hyper, Inputs
from lynceus.models.gaussian.prior import NormalVector, Settings
from lynceus.space.column import FloatArray, IntArray

Growth = Literal["settling", "linear"]
"""How a quantity grows with the data: it converges (accuracy, loss), or its logarithm is a line (time, cost)."""
LEVEL = (0.25, 0.35)
"""Mean and std of ln U₁₁, the std of w₁ in units of the standardised target."""
TILT = (0.0, 0.7)
"""Mean and std of U₁₂: how much of w₂ follows w₁."""
SLOPE = (-0.7, 0.7)
"""Mean and std of ln U₂₂, the std of the rest of w₂."""
DECAY = (0.4, 0.7)
"""Mean and std of ln decay: by which power of e the variance of a measurement falls from the smallest fraction to all data."""
BEND = 0.6
"""Std of the bend of a line, in units of the standardised target; what settles has none."""


def basis(share: FloatArray, growth: Growth) -> FloatArray:
    """φ(s) of every row and its bend, `[q, 3]`, from fractions of the data `[q]` in (0, 1].

    >>> basis(np.array([0.25, 0.5, 1.0]), "linear")
    array([[1.  , 0.  , 0.  ],
           [1.  , 0.5 , 0.25],
           [1.  , 1.  , 1.  ]])
    """
    s = 1.0 - shortfall(share)
    if growth == "settling":
        return np.column_stack([np.ones(len(s)), np.square(1.0 - s), np.zeros(len(s))])
    return np.column_stack([np.ones(len(s)), s, np.square(s)])


def shortfall(share: FloatArray) -> FloatArray:
    """1 - s of every row `[q]`: 0 on all data, 1 at the smallest fraction, logarithmic between."""
    logs = np.log(share)
    low = float(logs.min())
    return np.zeros(len(share)) if low == 0.0 else np.asarray(logs / low)


@dataclass(frozen=True, eq=False, slots=True)
class Plane:
    """The rows of a table as pairs of a configuration and a fraction of the data."""

    inputs: Inputs
    """The G configurations."""
    group: IntArray
    """The configuration of each row, `[q]`."""
    basis: FloatArray
    """φ(s) of each row and its bend, `[q, 3]`."""
    missing: FloatArray
    """1 - s of each row, `[q]`."""

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, eq=False, slots=True)
class FractionHyper:
    """Hyper-parameter vectors, h at a time, in units of the standardised target."""

    shape: Hyper
    """The Matérn part, with signal 1."""
    root: FloatArray
    """U, `[h, 3, 3]`, zero for the bend."""
    decay: FloatArray
    """How fast the noise falls with the data, `[h]`."""
    trend: FloatArray
    """Prior variances of the mean's coefficients over all configurations: two of D, and the bend's, `[3]`."""

    @classmethod
    def of_logs(cls, theta: FloatArray, numeric: int, trend: float) -> "FractionHyper":
        """From vectors (ln ℓ…, ln w…, ln U₁₁, U₁₂, ln U₂₂, ln decay, ln noise) `[h, d + 5]`."""
        plain = np.column_stack([theta[:, :-5], np.zeros(len(theta)), theta[:, -1]])
        root = np.zeros((len(theta), 3, 3))
        root[:, 0, 0], root[:, 0, 1], root[:, 1, 1] = np.exp(theta[:, -5]), theta[:, -4], np.exp(theta[:, -3])
        trends = np.array([trend, trend, BEND**2 * min(trend, 1.0)])
        return cls(Hyper.of_logs(plain, numeric, 0.0), root, np.exp(theta[:, -2]), trends)

    def only(self, which: slice) -> "FractionHyper":
        """Some of the vectors."""
        return FractionHyper(self.shape.only(which), self.root[which], self.decay[which], self.trend)

    def __len__(self) -> int:
        return len(self.root)

    @property
    def noise(self) -> FloatArray:
        """Variance of one measurement on all data, `[h]`."""
        return self.shape.noise

    def noise_at(self, plane: Plane, rows: IntArray) -> FloatArray:
        """Variance of one measurement at some rows, `[h, l]`."""
        return np.asarray(self.noise[:, np.newaxis] * np.exp(np.outer(self.decay, plane.missing[rows])))

    @property
    def mix(self) -> FloatArray:
        """UᵀU, the covariance of w at one configuration, `[h, 3, 3]`."""
        return np.swapaxes(self.root, 1, 2) @ self.root

    def likeness(self, plane: Plane, left: IntArray, right: IntArray) -> FloatArray:
        """The Matérn part between two lists of configurations, `[h, l, r]`."""
        return self.shape.covariance(plane.inputs.gaps(left[:, np.newaxis], right))

    def covariance(self, plane: Plane, left: IntArray, right: IntArray) -> FloatArray:
        """k between two lists of rows, `[h, l, r]`."""
        first, places = np.unique(plane.group[left], return_inverse=True)
        second, others = np.unique(plane.group[right], return_inverse=True)
        like = self.likeness(plane, first, second)[:, places[:, np.newaxis], others]
        one, two = plane.basis[left], plane.basis[right]
        return like * (one @ self.mix @ two.T) + (one * self.trend) @ two.T


def fraction_prior(settings: Settings, numeric: int, categorical: int) -> NormalVector:
    """The prior of (ln ℓ…, ln w…, ln U₁₁, U₁₂, ln U₂₂, ln decay, ln noise)."""
    length, spread = settings.log_length
    lengths = (length + 0.5 * np.log(max(numeric, 1)), spread)
    last = [LEVEL, TILT, SLOPE, DECAY, settings.log_noise]
    mean, std = np.array([lengths] * numeric + [settings.log_unlikeness] * categorical + last, dtype=np.float64).T
    return NormalVector(mean, np.diag(std))
