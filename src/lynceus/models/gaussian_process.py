"""Gaussian processes as a surrogate: from a state to a prediction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lynceus.models.blas import one_thread
from lynceus.models.features import Inputs, log_price, model_inputs, target_values
from lynceus.models.gaussian.prior import Settings
from lynceus.models.gaussian.regression import GaussianModel, fit
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import derive
from lynceus.models.state import Form, State
from lynceus.space.column import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """Matérn over numbers times a Hamming part over categories, averaged over hyper-parameters; one process per target."""

    target: Form = "log time"
    """Model the logarithm of time and derive cost through the known price, or dollars as they are (CherryPick)."""
    censored: Literal["bounds", "estimates"] = "bounds"
    """Treat stopped runs as lower bounds (Tobit, by expectation propagation), or use the estimates of their times."""
    inputs: Inputs = "features"
    settings: Settings = field(default_factory=Settings)
    centre: Literal["data", "deadline"] = "data"
    """Prior mean of ln time: the mean of the observations, or the deadline, because users choose deadlines that some configurations
    meet and others do not. Without a deadline: the observations."""
    slope: float = 0.0
    """Prior std of the slope of ln time along ln price, beyond what features explain; 0 for no trend."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """Mean and std of the function at every row in every state."""
        if not len(state.rows):
            raise ValueError(
                "a Gaussian process needs at least one observation; put an initial design before the planner"
            )
        with one_thread():
            moments = [self._moments(state, index, seed) for index in range(state.targets)]
        mean, std = (np.stack(parts, axis=2) for parts in zip(*moments, strict=True))
        return Prediction(self.target, mean, std)

    def model(self, state: State, index: int, seed: int) -> GaussianModel:
        """The fitted process of one target (0: the run's time or cost), for joint draws and inspection."""
        target, bounds = self._targets(state, index)
        known = np.isfinite(target)
        features, kinds = model_inputs(state.problem.space, self.inputs)
        in_logs = self.target == "log time" if index == 0 else bool(state.logs) and state.logs[index - 1]
        settings = self.settings if in_logs else replace(self.settings, spread=None)
        own_seed = derive(seed, "gaussian process", state.started, index)
        trend = None
        if index == 0 and self.slope and self.target == "log time":
            trend, settings = log_price(state.problem.space), replace(settings, slope=self.slope)
        centre = self._centre(state) if index == 0 else None
        return fit(features, kinds, state.rows[known], target[known], own_seed, settings, bounds[known], trend, centre)

    def _centre(self, state: State) -> float | None:
        """ln of the deadline, where there is one and the process is to be centred there."""
        deadline_s = state.problem.deadline_s
        if self.centre == "data" or self.target != "log time" or not 0 < deadline_s < np.inf:
            return None
        return float(np.log(deadline_s))

    def _moments(self, state: State, index: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[b, q]` of one target."""
        if not np.isfinite(self._targets(state, index)[0]).any():
            # No run reported this metric.
            shape = (len(state), len(state.open))
            return np.zeros(shape), np.ones(shape)
        model = self.model(state, index, seed)
        if state.imagined_rows.shape[1] == 0:
            shape = (len(state), len(model.mean))
            return np.broadcast_to(model.mean, shape), np.broadcast_to(model.std, shape)
        return model.condition(state.imagined_rows, state.imagined_targets[:, :, index])

    def _targets(self, state: State, index: int) -> tuple[FloatArray, BoolArray]:
        """Observations of a target `[n]` in the model's unit, and which of them are lower bounds."""
        if index > 0:
            target = state.metrics[:, index - 1]
            return target, np.zeros(len(target), dtype=bool)
        bounds = ~np.isnan(state.bound_s) if self.censored == "bounds" else np.zeros(len(state.rows), dtype=bool)
        return target_values(state, self.target, np.where(bounds, state.bound_s, state.seconds)), bounds
