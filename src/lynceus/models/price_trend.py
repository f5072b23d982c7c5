"""A prior for every job: more expensive configurations are faster, usually by less than the ratio of their prices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.features import log_price
from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State


@dataclass(frozen=True)
class PriceTrend:
    """A model of log time that learns only what the price does not explain: ln T = slope · ln price + model.

    Without the trend, a model that has only seen cheap machines miss the deadline predicts that all machines do. A slope of −1 is perfect
    scaling (twice the price, half the time, the same cost), 0 none at all. Over the measured jobs it lies between −1.2 and −0.1.
    """

    surrogate: Surrogate
    slope: float = -0.6

    def __call__(self, state: State, seed: int) -> Prediction:
        """The inner model's prediction of the residual, with the trend added."""
        trend = self.slope * log_price(state.problem.space)
        rest = np.exp(-trend[state.rows])
        target = state.imagined_targets.copy()
        target[:, :, 0] -= trend[state.imagined_rows]
        detrended = replace(state, seconds=state.seconds * rest, bound_s=state.bound_s * rest, imagined_targets=target)
        prediction = self.surrogate(detrended, seed)
        if prediction.form != "log time":
            raise ValueError(f"price-trend needs a model of log time, got one of {prediction.form}")
        mean = prediction.mean.copy()
        mean[:, :, 0] += trend
        return replace(prediction, mean=mean)
