"""A study step by step: what was spent, and the best known after each trial."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.history import History
from lynceus.problem import Problem
from lynceus.situation import feasible_runs


@dataclass(frozen=True)
class Step:
    """The study after one settled trial."""

    number: int
    spent_usd: float
    best: float
    """The goal of the incumbent in its own unit and sign; NaN while there is none."""
    incumbent: int | None
    """The trial's number of the incumbent."""


def steps(problem: Problem, history: History) -> list[Step]:
    """One step per settled trial, in the order of settling."""
    found: list[Step] = []
    spent, best, incumbent = 0.0, math.nan, None
    for seen in history:
        spent += seen.outcome.charged_usd
        for _, value in feasible_runs(problem, (seen,)):
            if math.isnan(best) or value < best:
                best, incumbent = value, seen.order.number
        found.append(Step(seen.order.number, spent, -best if problem.goal.maximise else best, incumbent))
    return found
