"""What is thought of every job before its first run: dearer configurations are faster, by less than they are dearer as a rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.parts import Surrogate
from lynceus.situation import Belief, Situation
from lynceus.surrogate.inputs import log_price


@dataclass(frozen=True)
class AlongPrice:
    """Let a model of log time learn only what the price does not explain: ln T = slope · ln price + model.

    Without it a model that has only seen cheap machines miss the deadline believes that all machines do. A slope of −1 is perfect
    scaling (twice the price, half the time, the same cost), 0 none at all. Over the measured jobs it lies between −1.2 and −0.1.
    """

    surrogate: Surrogate
    slope: float = -0.6

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """The inner model's belief of the rest, with the trend put back."""
        trend = self.slope * log_price(situation.problem.space)
        rest = np.exp(-trend[situation.rows])
        told = situation.imagined_told.copy()
        told[:, :, 0] -= trend[situation.imagined_rows]
        detrended = replace(
            situation, seconds=situation.seconds * rest, bound_s=situation.bound_s * rest, imagined_told=told
        )
        belief = self.surrogate(detrended, seed)
        if belief.form != "log time":
            raise ValueError(f"a trend along the price needs a model of log time, this one models {belief.form}")
        mean = belief.mean.copy()
        mean[:, :, 0] += trend
        return Belief(belief.form, mean, belief.std)
