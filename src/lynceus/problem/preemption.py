"""What preemptions cost: the cloud takes machines back, and the run starts again from the beginning.

A configuration is interrupted at rate r (per second, all its machines together), so a run of T seconds is interrupted with probability
p = 1 − e^(−rT), and an attempt lasts m = p/r seconds on average. An interrupted run is charged and starts again. Without an
on-demand twin it is repeated until it completes; the seconds paid are

    E = m · e^(rT) = (e^(rT) − 1)/r.

With a twin the run is moved to on-demand machines after k interruptions, so that there are 1 + p + … + p^(k−1) attempts on spot machines
and, with probability p^k, one that cannot be interrupted:

    dollars = s · m · (1 + p + … + p^(k−1)) + c · T · p^k      with the prices s (spot) and c (on demand) per second.

Both are the means of a geometric number of attempts; tests compare them with simulated runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.space.column import FloatArray, IntArray

_LARGEST = 700.0
"""Larger exponents overflow a float; such a run never completes anyway."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """What to expect of runs of given lengths; all arrays have one shape."""

    interrupted: FloatArray
    """Expected attempts that are interrupted."""
    interrupted_s: FloatArray
    """Mean seconds of one of them."""
    completed: FloatArray
    """Probability that the run completes on the machines it started on."""
    moved: FloatArray
    """Probability that it is moved to its on-demand twin."""


@dataclass(frozen=True, eq=False)
class Preemption:
    """How often each configuration is interrupted, and to which on-demand configuration it is moved."""

    rate_per_s: FloatArray
    """Interruptions per second of each configuration `[q]`; 0 for on-demand machines."""
    twin: IntArray
    """The row with the same machines on demand `[q]`; −1 for none."""
    interruptions: int = 2
    """A configuration with a twin is moved to it after this many interruptions."""

    def __post_init__(self) -> None:
        if self.rate_per_s.shape != self.twin.shape or self.interruptions < 1:
            raise ValueError("preemption needs one rate and one twin per configuration, and at least one interruption")
        if not (np.isfinite(self.rate_per_s).all() and (self.rate_per_s >= 0).all()):
            raise ValueError("interruption rates must be finite and not negative")
        if (self.rate_per_s[self.twin[self.twin >= 0]] > 0).any():
            raise ValueError("an on-demand twin must have an interruption rate of 0")

    def attempts(self, seconds: FloatArray, rows: IntArray) -> Attempts:
        """What to expect of runs that take `seconds` without interruption; the arrays broadcast."""
        rate = self.rate_per_s[rows]
        exponent = np.minimum(rate * seconds, _LARGEST)
        p = -np.expm1(-exponent)
        with np.errstate(divide="ignore", invalid="ignore"):
            # E[X | X < T] of an exponential X; for rates too small to compute it, its limit T/2.
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
        """Plain values that identify it, for fingerprints."""
        return [self.rate_per_s.tolist(), self.twin.tolist(), self.interruptions]
