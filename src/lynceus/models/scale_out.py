"""Ernest's model of scale-out (Venkataraman et al., NSDI 2016, eq. 1), one per machine type:

T(m, s) = θ0 + θ1·s/m + θ2·log m + θ3·m,    θ ≥ 0,    m machines, s the fraction of the data (1 where a job has none).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.problem.data_fraction import shares
from lynceus.space.column import FloatArray, IntArray

if TYPE_CHECKING:
    from lynceus.space.table import Space

_WIDE = 1.0
"""Std, in ln seconds, of a machine type that was never run."""


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """Non-negative least squares on 1, s/m, log m and m, fitted to each machine type separately.

    The published model has no uncertainty; here the std is that of its relative residuals, with a floor.
    """

    machines: str = "nodes"
    """The parameter that counts machines; all other parameters except the data fraction together are the machine type."""
    floor: float = 0.05
    """Smallest std of a prediction, in ln seconds."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """ln seconds of every row in every state; metrics are predicted as their average so far."""
        group, basis = machine_types(state.problem.space, self.machines, state.problem.fraction)
        moments = [self._moments(state, i, group, basis) for i in range(len(state))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Prediction("log time", mean, std)

    def _moments(self, state: State, i: int, group: IntArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one state, its imagined runs included."""
        rows = np.concatenate([state.rows, state.imagined_rows[i]])
        seconds = np.concatenate([state.seconds, np.exp(np.clip(state.imagined_targets[i, :, 0], -700, 700))])
        target = np.vstack([state.metrics, state.imagined_targets[i, :, 1:]])
        logs = np.log(np.maximum(seconds, 1e-3))
        mean = np.full((len(group), 1 + target.shape[1]), logs.mean())
        std = np.full(mean.shape, max(_WIDE, float(logs.std())))
        for one in np.unique(group[rows]):
            here = group[rows] == one
            ours = group == one
            fitted, spread = fit_law(basis[rows[here]], seconds[here], basis[ours])
            mean[ours, 0] = np.log(np.maximum(fitted, 1e-3))
            std[ours, 0] = max(spread, self.floor)
        average_metrics(target, mean, std)
        return mean, std


def average_metrics(target: FloatArray, mean: FloatArray, std: FloatArray) -> None:
    """Fill in mean and std `[q, m]` of the metrics, of which Ernest knows nothing: their average over the runs, `target [n, m - 1]`."""
    for metric in range(target.shape[1]):
        known = target[np.isfinite(target[:, metric]), metric]
        mean[:, 1 + metric] = known.mean() if len(known) else 0.0
        std[:, 1 + metric] = max(float(known.std()), 1e-6) if len(known) else 1.0


def fit_law(basis: FloatArray, seconds: FloatArray, wanted: FloatArray) -> tuple[FloatArray, float]:
    """Predicted seconds and the std of ln residuals. Relative errors are minimised, so that long runs do not dominate short ones."""
    from scipy.optimize import nnls

    theta, _ = nnls(basis / seconds[:, None], np.ones(len(seconds)))
    residual = np.log(np.maximum(basis @ theta, 1e-3)) - np.log(seconds)
    free = max(len(seconds) - np.count_nonzero(theta), 1)
    return wanted @ theta, float(np.sqrt((residual**2).sum() / free))


@lru_cache(maxsize=16)
def machine_types(space: Space, machines: str, fraction: str | None = None) -> tuple[IntArray, FloatArray]:
    """The machine type of every row `[q]` and its basis 1, s/m, log m, m `[q, 4]`; one type when no other parameter varies.

    Without a parameter of that name (a job that does not scale out) every row has one machine.
    """
    others = [place for place, one in enumerate(space.parameters) if one.name not in (machines, fraction)]
    _, group = (
        np.unique(space.codes[:, others], axis=0, return_inverse=True) if others else (None, np.zeros(len(space)))
    )
    counted = any(one.name == machines for one in space.parameters)
    count = np.asarray(space.column(machines), dtype=float) if counted else np.ones(len(space))
    share = np.ones(len(space)) if fraction is None else shares(space, fraction)
    return np.asarray(group, dtype=np.int64).ravel(), np.stack(
        [np.ones_like(count), share / count, np.log(count), count], axis=1
    )
