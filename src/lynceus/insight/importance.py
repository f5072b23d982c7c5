"""Which parameters matter: how much of the believed variation each explains by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.history import History
from lynceus.policy import Policy
from lynceus.policy.belief import belief_of, believed_values
from lynceus.problem import Problem


@dataclass(frozen=True)
class Importance:
    """A parameter's share of the variation, and what each of its values does on average."""

    parameter: str
    share: float
    """Between 0 and 1: Var(E[f | parameter]) / Var(f) over all configurations, the first-order index of Sobol'."""
    effect: tuple[tuple[object, float], ...]
    """(value, mean of the believed goal where the parameter has it), in the order of its values."""


def importance(problem: Problem, policy: Policy, history: History, *, seed: int) -> list[Importance]:
    """Parameters, most important first; empty while a model knows too little."""
    believed = belief_of(problem, policy, history, seed)
    return [] if believed is None else shares(problem, believed_values(*believed))


def shares(problem: Problem, values: NDArray[np.float64]) -> list[Importance]:
    """First-order indices of a function given by its value in every configuration `[q]`.

    The space is a finite table, so the conditional means are exact. Positive goals are compared on a logarithmic scale,
    where "twice as dear" weighs the same for cheap and for dear configurations.
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
