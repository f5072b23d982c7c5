"""Ernest's model of scale-out (Venkataraman et al., NSDI 2016): T(m) = θ0 + θ1/m + θ2·log m + θ3·m with θ ≥ 0, one per machine type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.situation import Belief, FloatArray, IntArray, Situation

if TYPE_CHECKING:
    from lynceus.space import Space

_WIDE = 1.0
"""Spread, in ln seconds, of a machine type that was never tried."""


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """Non-negative least squares on 1, 1/m, log m and m, fitted to each machine type by itself.

    The published model gives a number without a spread; here the spread is that of its relative residuals, with a floor.
    """

    machines: str = "nodes"
    """The parameter that counts machines; whatever else varies makes another machine type."""
    floor: float = 0.05
    """Least spread of a prediction, in ln seconds."""

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """ln seconds of every row in every situation; reported metrics are believed to be what they were on average."""
        group, basis = machine_types(situation.problem.space, self.machines)
        moments = [self._moments(situation, i, group, basis) for i in range(len(situation))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Belief("log time", mean, std)

    def _moments(
        self, situation: Situation, i: int, group: IntArray, basis: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one situation, its imagined runs included."""
        rows = np.concatenate([situation.rows, situation.imagined_rows[i]])
        seconds = np.concatenate([situation.seconds, np.exp(np.clip(situation.imagined_told[i, :, 0], -700, 700))])
        told = np.vstack([situation.metrics, situation.imagined_told[i, :, 1:]])
        logs = np.log(np.maximum(seconds, 1e-3))
        mean = np.full((len(group), 1 + told.shape[1]), logs.mean())
        std = np.full(mean.shape, max(_WIDE, float(logs.std())))
        for one in np.unique(group[rows]):
            here = group[rows] == one
            ours = group == one
            fitted, spread = _fit(basis[rows[here]], seconds[here], basis[ours])
            mean[ours, 0] = np.log(np.maximum(fitted, 1e-3))
            std[ours, 0] = max(spread, self.floor)
        for metric in range(told.shape[1]):
            known = told[np.isfinite(told[:, metric]), metric]
            mean[:, 1 + metric] = known.mean() if len(known) else 0.0
            std[:, 1 + metric] = max(float(known.std()), 1e-6) if len(known) else 1.0
        return mean, std


def _fit(basis: FloatArray, seconds: FloatArray, wanted: FloatArray) -> tuple[FloatArray, float]:
    """Predicted seconds and the spread of ln residuals. Relative errors are minimised, so that long runs do not outvote short ones."""
    from scipy.optimize import nnls

    theta, _ = nnls(basis / seconds[:, None], np.ones(len(seconds)))
    residual = np.log(np.maximum(basis @ theta, 1e-3)) - np.log(seconds)
    free = max(len(seconds) - np.count_nonzero(theta), 1)
    return wanted @ theta, float(np.sqrt((residual**2).sum() / free))


@lru_cache(maxsize=16)
def machine_types(space: Space, machines: str) -> tuple[IntArray, FloatArray]:
    """The machine type of every row `[q]` and its basis 1, 1/m, log m, m `[q, 4]`; one type when nothing else varies.

    Without a parameter of that name (a job that does not scale out) every row has one machine.
    """
    others = [place for place, one in enumerate(space.parameters) if one.name != machines]
    _, group = (
        np.unique(space.codes[:, others], axis=0, return_inverse=True) if others else (None, np.zeros(len(space)))
    )
    counted = any(one.name == machines for one in space.parameters)
    count = np.asarray(space.column(machines), dtype=float) if counted else np.ones(len(space))
    return np.asarray(group, dtype=np.int64).ravel(), np.stack(
        [np.ones_like(count), 1 / count, np.log(count), count], axis=1
    )
