"""Ernest's model of scale-out over input sizes: earlier jobs of other sizes tell the time at the size of this job.

T(m, s) = θ0 + θ1·s/m + θ2·log m + θ3·m,    θ ≥ 0,    m machines, s the size of the input in multiples of this job's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.past_match import match
from lynceus.models.prediction import Prediction
from lynceus.models.scale_out import average_metrics, fit_law, machine_types
from lynceus.models.state import State
from lynceus.problem.job_input import SIZE
from lynceus.space.column import FloatArray, IntArray

if TYPE_CHECKING:
    from lynceus.problem.history import PastJob
    from lynceus.problem.problem import Problem
    from lynceus.space.table import Space

_WIDE = 1.0
"""Std, in ln seconds, of a machine type that never ran, at no size."""


@dataclass(frozen=True, eq=False)
class SizedRuns:
    """Finished runs of earlier jobs on configurations of this space, n of them."""

    rows: IntArray
    """Their configurations `[n]`."""
    sizes: FloatArray
    """Sizes of their inputs, in multiples of this job's `[n]`."""
    seconds: FloatArray
    """Their times `[n]`."""


def sized_runs(problem: Problem) -> SizedRuns:
    """The runs of related past jobs with an input size; none where the size of this job is not known."""
    size = None if problem.input is None else problem.input.numbers.get(SIZE)
    return _sized_runs(problem.space, problem.history, size)


@lru_cache(maxsize=64)
def _sized_runs(space: Space, history: tuple[PastJob, ...], size: float | None) -> SizedRuns:
    found: list[tuple[int, float, float]] = []
    for job in history:
        theirs = None if job.input is None else job.input.numbers.get(SIZE)
        if size is None or theirs is None or not job.related:
            continue
        matched = match(space, job)
        ours = space.features[:, list(matched.used)]
        for run, features in zip(matched.runs, matched.features, strict=True):
            same = np.flatnonzero(np.isclose(ours, features).all(axis=1))
            if len(same) == 1 and not job.stopped[run]:
                found.append((int(same[0]), theirs / size, job.seconds[run]))
    rows, sizes, seconds = zip(*found, strict=True) if found else ((), (), ())
    return SizedRuns(np.array(rows, dtype=np.int64), np.array(sizes, dtype=float), np.array(seconds, dtype=float))


@dataclass(frozen=True, slots=True)
class SizedScaleOut:
    """Non-negative least squares on 1, s/m, log m and m over earlier jobs and the runs of this one, for each machine type."""

    machines: str = "nodes"
    """The parameter that counts machines; all other parameters except the data fraction together are the machine type."""
    floor: float = 0.05
    """Smallest std of a prediction, in ln seconds."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """ln seconds of every row in every state; metrics are predicted as their average so far."""
        group, basis = machine_types(state.problem.space, self.machines, state.problem.fraction)
        past = sized_runs(state.problem)
        moments = [self._moments(state, i, group, basis, past) for i in range(len(state))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Prediction("log time", mean, std)

    def _moments(
        self, state: State, i: int, group: IntArray, basis: FloatArray, past: SizedRuns
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one state, its imagined runs included."""
        imagined = np.exp(np.clip(state.imagined_targets[i, :, 0], -700, 700))
        rows = np.concatenate([past.rows, state.rows, state.imagined_rows[i]])
        seconds = np.maximum(np.concatenate([past.seconds, state.seconds, imagined]), 1e-3)
        ran = basis[rows]
        ran[: len(past.rows), 1] *= past.sizes
        target = np.vstack([state.metrics, state.imagined_targets[i, :, 1:]])
        logs = np.log(seconds) if len(seconds) else np.zeros(1)
        mean = np.full((len(group), 1 + target.shape[1]), logs.mean())
        std = np.full(mean.shape, max(_WIDE, float(logs.std())))
        for one in np.unique(group[rows]):
            here, ours = group[rows] == one, group == one
            fitted, spread = fit_law(ran[here], seconds[here], basis[ours])
            mean[ours, 0] = np.log(np.maximum(fitted, 1e-3))
            std[ours, 0] = max(spread, self.floor)
        average_metrics(target, mean, std)
        return mean, std
