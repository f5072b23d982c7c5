"""Positive metrics by their logarithm: latencies, throughputs and sizes differ by factors, as times do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.space.column import BoolArray, FloatArray

_UNKNOWN = 1.0
"""Standard deviation of the logarithm of a metric that no run has reported yet."""


@dataclass(frozen=True)
class LogMetrics:
    """A model that learns ln m of every metric whose values were all positive so far, and m of the others.

    Then a factor between units is a shift, which changes no decision, and a formula such as price / throughput has an exact distribution.
    A metric that no run reported is believed to lie around its limit, within a factor of e.
    """

    surrogate: Surrogate

    def __call__(self, state: State, seed: int) -> Prediction:
        """The inner model's prediction, with metrics as logarithms."""
        logs = _positive(state)
        with np.errstate(all="ignore"):
            metrics = np.where(logs, np.log(state.metrics), state.metrics)
        prediction = self.surrogate(replace(state, metrics=metrics, logs=tuple(map(bool, logs))), seed)
        silent = np.asarray(np.isnan(state.metrics).all(axis=0))
        if silent.any():
            prediction = _believed(prediction, state, silent)
        return replace(prediction, logs=tuple(map(bool, logs)))


def _positive(state: State) -> BoolArray:
    """Metrics whose values were all positive, and whose limits can be met by a positive value `[m - 1]`."""
    seen = np.asarray(~(state.metrics <= 0).any(axis=0))
    for constraint in state.problem.metric_constraints:
        if constraint.bound <= 0:
            seen[state.problem.metrics.index(constraint.metric)] = False
    return seen


def _believed(prediction: Prediction, state: State, silent: BoolArray) -> Prediction:
    """The prediction with metrics that no run reported around their limits."""
    mean, std = prediction.mean.copy(), prediction.std.copy()
    for place in np.flatnonzero(silent):
        middle, width = _around(state, int(place))
        mean[:, :, 1 + place], std[:, :, 1 + place] = middle, width
    return replace(prediction, mean=mean, std=std)


def _around(state: State, place: int) -> tuple[FloatArray | float, float]:
    """Mean and std of a metric by its limits alone, in the model's unit."""
    name = state.problem.metrics[place]
    bounds = [each.bound for each in state.problem.metric_constraints if each.metric == name]
    if not bounds:
        return 0.0, _UNKNOWN
    middle = float(np.mean(bounds))
    if min(bounds) > 0:
        return float(np.mean(np.log(bounds))), _UNKNOWN
    return middle, max(abs(middle), max(map(abs, bounds))) or 1.0
