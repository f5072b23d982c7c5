"""Which parameters matter: how much of the predicted variation each explains by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.analysis.predictions import predict, predicted_objective
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observations


@dataclass(frozen=True)
class Importance:
    """A parameter's share of the variation, and the mean effect of each of its values."""

    parameter: str
    share: float
    """Between 0 and 1: Var(E[f | parameter]) / Var(f) over all configurations, the first-order index of Sobol'."""
    effect: tuple[tuple[object, float], ...]
    """(value, mean of the predicted objective where the parameter has it), in the order of the values."""


def importance(problem: Problem, policy: Policy, observations: Observations, *, seed: int) -> list[Importance]:
    """Parameters, most important first; empty while there are too few runs."""
    prediction = predict(problem, policy, observations, seed)
    return [] if prediction is None else first_order_shares(problem, predicted_objective(prediction, problem))


def first_order_shares(problem: Problem, values: NDArray[np.float64]) -> list[Importance]:
    """First-order indices of a function given by its value in every configuration `[q]`.

    The space is a finite table, so the conditional means are exact. Positive objectives are compared on a logarithmic scale,
    where "twice as expensive" weighs the same for cheap and for expensive configurations.
    """
    scale = np.log(values) if (values > 0).all() else values
    total = float(scale.var())
    found = []
    for index, parameter in enumerate(problem.space.parameters):
        codes = problem.space.codes[:, index]
        between, effect = 0.0, []
        for code in np.unique(codes):
            which = codes == code
            between += float(which.mean()) * float(scale[which].mean() - scale.mean()) ** 2
            if code >= 0:
                effect.append((parameter.values[code], float(values[which].mean())))
        found.append(Importance(parameter.name, between / total if total > 0 else 0.0, tuple(effect)))
    return sorted(found, key=lambda one: -one.share)
