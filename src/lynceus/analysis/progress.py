"""A study trial by trial: what was spent, and the best configuration known by then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import Incumbent, IncumbentTrail
from lynceus.trial.nan_equality import NanEquality
from lynceus.trial.outcome import End, Observations


@dataclass(frozen=True, slots=True, eq=False)
class ProgressPoint(NanEquality):
    """A study after one settled trial."""

    number: int
    """The trial that settled."""
    spent_usd: float
    best_value: float
    """The objective of the incumbent in its own unit and sign; NaN while there is none."""
    best_trial: int | None
    """The number of the incumbent's trial."""


def progress(problem: Problem, observations: Observations) -> Sequence[ProgressPoint]:
    """One point per settled trial, in the order of settling."""
    return ProgressTrail(problem).after(observations).points


@dataclass(frozen=True)
class Progress:
    """What a trail knows after some trials."""

    points: Sequence[ProgressPoint]
    """One per settled trial; a trail adds more at the end as it goes on."""
    best: Incumbent | None
    stopped_early: int
    failed: int


class ProgressTrail:
    """The progress of a study that grows: `after` looks only at the trials that have settled since it was last called."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._incumbents = IncumbentTrail(problem)
        self._points: list[ProgressPoint] = []
        self._spent, self._ends = 0.0, dict.fromkeys(End, 0)

    def after(self, observations: Observations) -> Progress:
        """The progress after all of these trials, the first of which are those of the last call."""
        sign = self.problem.objective.sign
        for seen in observations[len(self._points) :]:
            best = self._incumbents.add(seen)
            self._spent += seen.outcome.charged_usd
            self._ends[seen.outcome.end] += 1
            value, trial = (math.nan, None) if best is None else (sign * best.value, best.number)
            self._points.append(ProgressPoint(seen.order.number, self._spent, value, trial))
        ends = self._ends
        return Progress(self._points, self._incumbents.best, ends[End.TIMEOUT], ends[End.FAILED])
