"""Gaussian processes as a surrogate: situation in, belief out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lynceus.randomness import derive
from lynceus.situation import Belief, BoolArray, FloatArray, Form, Situation
from lynceus.surrogate.blas import one_thread
from lynceus.surrogate.gaussian import GaussianModel, Settings, fit
from lynceus.surrogate.inputs import Inputs, log_price, model_inputs, told_run


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """Matérn over numbers times a Hamming part over categories, averaged over hyper-parameters; one process per target."""

    target: Form = "log time"
    """Model the logarithm of time and derive cost through the known price, or dollars as they are (CherryPick)."""
    censored: Literal["bounds", "estimates"] = "bounds"
    """Treat stopped runs as lower bounds (Tobit, by expectation propagation), or believe the estimates that were told."""
    inputs: Inputs = "features"
    settings: Settings = field(default_factory=Settings)
    centre: Literal["data", "deadline"] = "data"
    """Where ln time lies before anything is seen: about the mean of what is told, or about the deadline, because a deadline is chosen
    by somebody who thinks that some configurations keep it and others do not. Without a deadline: about the data."""
    slope: float = 0.0
    """How much ln time may rise or fall with ln price, beyond what features explain: std of an unknown slope. 0: not at all."""

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """Mean and std of the function at every row in every situation."""
        if not len(situation.rows):
            raise ValueError(
                "a Gaussian process needs at least one observation; put an initial design before the planner"
            )
        with one_thread():
            moments = [self._moments(situation, index, seed) for index in range(situation.targets)]
        mean, std = (np.stack(parts, axis=2) for parts in zip(*moments, strict=True))
        return Belief(self.target, mean, std)

    def model(self, situation: Situation, index: int, seed: int) -> GaussianModel:
        """The fitted process of one target (0: the run's time or cost), for joint draws and inspection."""
        told, bounds = self._told(situation, index)
        known = np.isfinite(told)
        features, kinds = model_inputs(situation.problem.space, self.inputs)
        settings = self.settings if index == 0 and self.target == "log time" else replace(self.settings, spread=None)
        luck = derive(seed, "gaussian process", situation.started, index)
        trend = None
        if index == 0 and self.slope and self.target == "log time":
            trend, settings = log_price(situation.problem.space), replace(settings, slope=self.slope)
        centre = self._centre(situation) if index == 0 else None
        return fit(features, kinds, situation.rows[known], told[known], luck, settings, bounds[known], trend, centre)

    def _centre(self, situation: Situation) -> float | None:
        """ln of the deadline, where there is one and the process is to be centred there."""
        deadline_s = situation.problem.deadline_s
        if self.centre == "data" or self.target != "log time" or not 0 < deadline_s < np.inf:
            return None
        return float(np.log(deadline_s))

    def _moments(self, situation: Situation, index: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[b, q]` of one target."""
        if not np.isfinite(self._told(situation, index)[0]).any():
            # Nothing was ever reported of this metric: as good as no model.
            shape = (len(situation), len(situation.open))
            return np.zeros(shape), np.ones(shape)
        model = self.model(situation, index, seed)
        if situation.imagined_rows.shape[1] == 0:
            shape = (len(situation), len(model.mean))
            return np.broadcast_to(model.mean, shape), np.broadcast_to(model.std, shape)
        return model.condition(situation.imagined_rows, situation.imagined_told[:, :, index])

    def _told(self, situation: Situation, index: int) -> tuple[FloatArray, BoolArray]:
        """What is told of a target `[n]`, in the model's unit, and which of it are lower bounds."""
        if index > 0:
            told = situation.metrics[:, index - 1]
            return told, np.zeros(len(told), dtype=bool)
        bounds = (
            ~np.isnan(situation.bound_s) if self.censored == "bounds" else np.zeros(len(situation.rows), dtype=bool)
        )
        return told_run(situation, self.target, np.where(bounds, situation.bound_s, situation.seconds)), bounds
