"""A study trial by trial: what was spent, and the best configuration known by then."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import incumbents
from lynceus.trial.outcome import Observations


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """A study after one settled trial."""

    number: int
    """The trial that settled."""
    spent_usd: float
    best_value: float
    """The objective of the incumbent in its own unit and sign; NaN while there is none."""
    best_trial: int | None
    """The number of the incumbent's trial."""


def progress(problem: Problem, observations: Observations) -> list[ProgressPoint]:
    """One point per settled trial, in the order of settling."""
    points = []
    spent, sign = 0.0, problem.objective.sign
    for seen, best in zip(observations, incumbents(problem, observations), strict=True):
        spent += seen.outcome.charged_usd
        value, trial = (math.nan, None) if best is None else (sign * best.value, best.number)
        points.append(ProgressPoint(seen.order.number, spent, value, trial))
    return points
