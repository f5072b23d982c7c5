"""Only rows that are predicted to be feasible (Nephele's set Γ)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.policy.interfaces import Chooser
from lynceus.space.column import BoolArray
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class Promising:
    """Restricts a chooser to rows whose predicted means meet every constraint; no proposal when there is none.

    Imagined runs of a look-ahead are restricted to the same rows; the paper uses the updated model instead.
    """

    chooser: Chooser

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, with all other rows closed."""
        if surrogate is None:
            raise ValueError("promising needs a surrogate; this policy has none")
        if not len(state.rows) or not state.problem.constraints:
            return self.chooser(state, surrogate, seed)
        inside = state.open & means_are_feasible(surrogate(state, seed), state)
        return self.chooser(replace(state, open=inside), surrogate, seed) if inside.any() else None


def means_are_feasible(prediction: Prediction, state: State) -> BoolArray:
    """Whether the means of every row of the first state meet every constraint `[q]`."""
    problem = state.problem
    run = prediction.mean[0, :, 0]
    feasible = (
        run <= problem.ceiling_usd if prediction.form == "cost" else np.exp(np.minimum(run, 700.0)) <= problem.ceiling_s
    )
    for constraint in problem.metric_constraints:
        value = prediction.metric(problem.metrics.index(constraint.metric)).quantile(0.5)[0]
        feasible = feasible & (value >= constraint.bound if constraint.at_least else value <= constraint.bound)
    return np.asarray(feasible)
