"""Caps: the moment after which a run can no longer be the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lynceus.history import Plan
from lynceus.situation import Situation, feasible_runs


@dataclass(frozen=True, slots=True)
class NoCap:
    """Runs go to their end."""

    def __call__(self, situation: Situation, plan: Plan) -> float:
        """Infinity."""
        return math.inf


@dataclass(frozen=True, slots=True)
class IncumbentCap:
    """Stop when the run has cost as much as the incumbent, or is late: t = min(C(x*)/U(x), Tmax)."""

    first_runs_too: bool = False
    """Also cap runs that a design marked as not stoppable (the papers let the initial design finish)."""
    every_s: float = 0.0
    """The job is looked at only every so many seconds (30 in the thesis); 0 watches continuously."""
    slack: float = 1.0
    """Multiple of the incumbent at which a run is stopped (iTuned and Vizier: 2, on time)."""
    measure: Literal["cost", "time"] = "cost"
    """Compare with the incumbent's cost, or with its running time."""

    def __call__(self, situation: Situation, plan: Plan) -> float:
        """Seconds until the stop."""
        if not (plan.stoppable or self.first_runs_too):
            return math.inf
        if self.measure == "cost":
            cap = self._by_value(situation, plan.row)
        else:
            cap = min(self._by_time(situation), float(situation.problem.ceiling_s[plan.row]))
        cap = max(cap, 0.0)
        if self.every_s and math.isfinite(cap):
            cap = math.ceil(cap / self.every_s - 1e-9) * self.every_s
        return cap

    def _by_value(self, situation: Situation, row: int) -> float:
        if self.slack != 1.0:
            situation = replace(situation, best=self.slack * situation.best)
        return float(situation.cap_s_of(np.array([row]))[0])

    def _by_time(self, situation: Situation) -> float:
        best = incumbent_seconds(situation)
        return math.inf if best is None else self.slack * best


def incumbent_seconds(situation: Situation) -> float | None:
    """How long the best run that kept every limit took; nothing while there is none."""
    kept = [
        (runs[0][1], seen.outcome.seconds)
        for seen in situation.history
        if (runs := feasible_runs(situation.problem, (seen,)))
    ]
    return min(kept)[1] if kept else None
