"""What interruptions cost: machines that the cloud may take back, and runs that begin again from the start.

Interruptions of a configuration come at rate r (per second, all its machines together), so a run of T seconds is interrupted with
p = 1 − e^(−rT), and an attempt lasts m = p/r seconds on average. An interrupted run is charged and starts again. Without an
on-demand twin this goes on until it comes through; the seconds paid are

    E = m · e^(rT) = (e^(rT) − 1)/r.

With a twin the run is moved to on-demand machines after k interruptions, so that there are 1 + p + … + p^(k−1) attempts on spot machines
and, with chance p^k, one that cannot be interrupted:

    dollars = s · m · (1 + p + … + p^(k−1)) + c · T · p^k      with the prices s (spot) and c (on demand) per second.

Both are the means of a geometric number of attempts; tests compare them with simulated runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LARGEST = 700.0
"""Beyond e^700 a float ends; such a run never comes through anyway."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """How a run of given lengths is expected to go, all arrays of one shape."""

    interrupted: FloatArray
    """Expected attempts that are interrupted."""
    interrupted_s: FloatArray
    """Mean seconds of one of them."""
    through: FloatArray
    """Chance that the run comes through on the machines it began with."""
    moved: FloatArray
    """Chance that it ends on its on-demand twin."""


@dataclass(frozen=True, eq=False)
class Restarts:
    """Which configurations are interrupted how often, and where they are moved then."""

    rate_per_s: FloatArray
    """Interruptions per second of each configuration `[q]`; 0 where machines stay."""
    twin: IntArray
    """The row with the same machines on demand `[q]`; −1 for none."""
    interruptions: int = 2
    """A configuration with a twin is moved to it after so many interruptions."""

    def __post_init__(self) -> None:
        if self.rate_per_s.shape != self.twin.shape or self.interruptions < 1:
            raise ValueError("restarts need one rate and one twin per configuration, and at least one interruption")
        if not (np.isfinite(self.rate_per_s).all() and (self.rate_per_s >= 0).all()):
            raise ValueError("rates of interruptions are finite and not negative")
        if (self.rate_per_s[self.twin[self.twin >= 0]] > 0).any():
            raise ValueError("a twin that is interrupted itself is no refuge")

    def attempts(self, seconds: FloatArray, rows: IntArray) -> Attempts:
        """What is expected of runs that need `seconds` if nothing disturbs them; the arrays broadcast."""
        rate = self.rate_per_s[rows]
        exponent = np.minimum(rate * seconds, _LARGEST)
        p = -np.expm1(-exponent)
        with np.errstate(divide="ignore", invalid="ignore"):
            # E[X | X < T] of an exponential life X; T/2 for rates so small that nothing else can be computed.
            mean = 1.0 / rate - seconds * np.exp(-exponent) / p
        interrupted_s = np.where(exponent > 1e-6, mean, seconds / 2)
        with_twin = self.twin[rows] >= 0
        tries = np.zeros_like(p)
        for k in range(1, self.interruptions + 1):
            tries = tries + p**k
        interrupted = np.where(with_twin, tries, np.expm1(exponent))
        moved = np.where(with_twin, p**self.interruptions, 0.0)
        return Attempts(interrupted, interrupted_s, 1.0 - moved, moved)

    def facts(self) -> list[object]:
        """Plain values, to know it again."""
        return [self.rate_per_s.tolist(), self.twin.tolist(), self.interruptions]
