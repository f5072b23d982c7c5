"""Why this suggestion: what the model thinks of it, and of the configurations it was preferred to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.history import History, Order
from lynceus.policy import Policy
from lynceus.policy.belief import LEAST, believed_seconds
from lynceus.problem import Problem
from lynceus.situation import Situation
from lynceus.surrogate.trees import Trees


@dataclass(frozen=True)
class Candidate:
    """An open configuration in the model's eyes."""

    row: int
    params: Mapping[str, object]
    gain: float
    """Expected improvement over the incumbent under the limits, in the goal's unit."""
    charge_usd: float
    """Dollars that running it is expected to cost, stopped when it can no longer win."""
    per_dollar: float
    """Expected gain per dollar."""
    probability: float
    """Chance to keep every limit."""
    seconds: float
    """Expected time."""


def candidates(
    problem: Problem, policy: Policy, history: History, pending: tuple[Order, ...] = (), *, seed: int, most: int = 5
) -> list[Candidate]:
    """The open configurations with the largest expected gain per dollar; empty while a model knows too little."""
    situation = Situation.present(problem, history, pending)
    if len(situation.rows) < LEAST:
        return []
    belief = (policy.surrogate if policy.surrogate is not None else Trees())(situation, seed)
    gain = ConstrainedImprovement()(belief, situation)[0]
    charge = np.maximum(np.broadcast_to(belief.charge(situation, situation.caps_s()), (1, len(gain)))[0], 1e-12)
    probability, seconds = belief.feasible(problem)[0], believed_seconds(belief, problem)
    per_dollar = np.where(situation.open, gain / charge, -np.inf)
    best = [int(row) for row in np.argsort(-per_dollar, kind="stable")[:most] if situation.open[row]]
    return [
        Candidate(
            row,
            problem.space.point(row),
            float(gain[row]),
            float(charge[row]),
            float(per_dollar[row]),
            float(probability[row]),
            float(seconds[row]),
        )
        for row in best
    ]
