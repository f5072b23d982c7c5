"""The configuration to use at an input that may never have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lynceus.models.prediction import Prediction
    from lynceus.problem.problem import Problem
    from lynceus.space.column import FloatArray

LIKELY = 0.8
"""The chance to keep every constraint that is demanded of a configuration where the constraints demand none themselves, and the chance
with which a run costs no more than what configurations are compared by."""


def demanded_chance(problem: Problem) -> float:
    """The chance to keep every constraint that a prediction must have."""
    return max((one.confidence for one in problem.constraints if one.confidence is not None), default=LIKELY)


def best_at_input(problem: Problem, prediction: Prediction) -> int:
    """The row with the best objective that is likely to be kept, among those that are likely to keep every constraint; otherwise the
    likeliest. What never ran may be far from its prediction, so that the expectation alone would prefer what is least known."""
    chance, value = prediction.feasible(problem)[0], likely_objective(problem, prediction)
    may = np.ones(len(chance), dtype=bool) if problem.answerable is None else problem.answerable
    sure = may & (chance >= demanded_chance(problem))
    if sure.any():
        return int(np.argmin(np.where(sure, value, np.inf)))
    return int(np.argmax(np.where(may, chance, -np.inf)))


def likely_objective(problem: Problem, prediction: Prediction) -> FloatArray:
    """What the objective of a run does not exceed with a chance of 80 %, smaller is better `[q]`."""
    if problem.kind == "metric":
        reported = prediction.reported_objective(problem)
        sign = problem.objective.sign
        return np.asarray(sign * reported.quantile(LIKELY if sign > 0 else 1.0 - LIKELY)[0])
    seconds = prediction.run().quantile(LIKELY)
    return np.asarray((problem.run_costs.of(seconds) if problem.kind == "cost" else seconds)[0])
