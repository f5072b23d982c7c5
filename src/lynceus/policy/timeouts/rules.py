"""Timeout rules: the time after which a run cannot be recommended any more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lynceus.models.state import State, feasible_runs
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class NoTimeout:
    """Runs are never stopped."""

    def __call__(self, state: State, plan: Plan) -> float:
        """Infinity."""
        return math.inf


@dataclass(frozen=True, slots=True)
class IncumbentTimeout:
    """Stop a run when it has cost as much as the incumbent, or is late: t = min(C(x*)/U(x), Tmax) (ICDCS'20)."""

    first_runs_too: bool = False
    """Also stop runs of the initial design (the papers let them finish)."""
    every_s: float = 0.0
    """The job is checked only every so many seconds (30 in the thesis); 0 checks continuously."""
    slack: float = 1.0
    """Multiple of the incumbent at which a run is stopped (iTuned and Vizier: 2, on time)."""
    measure: Literal["cost", "time"] = "cost"
    """Compare with the incumbent's cost, or with its running time."""

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop."""
        if not (plan.stoppable or self.first_runs_too):
            return math.inf
        if self.measure == "cost":
            timeout_s = self._by_value(state, plan.row)
        else:
            timeout_s = min(self._by_time(state), float(state.problem.ceiling_s[plan.row]))
        timeout_s = max(timeout_s, 0.0)
        if self.every_s and math.isfinite(timeout_s):
            timeout_s = math.ceil(timeout_s / self.every_s - 1e-9) * self.every_s
        return timeout_s

    def _by_value(self, state: State, row: int) -> float:
        if self.slack != 1.0:
            state = replace(state, best=self.slack * state.best)
        return float(state.timeout_s_of(np.array([row]))[0])

    def _by_time(self, state: State) -> float:
        best = incumbent_seconds(state)
        return math.inf if best is None else self.slack * best


def incumbent_seconds(state: State) -> float | None:
    """The time of the best run that met every constraint; None while there is none."""
    feasible = [
        (runs[0][1], seen.outcome.seconds)
        for seen in state.observations
        if (runs := feasible_runs(state.problem, (seen,)))
    ]
    return min(feasible)[1] if feasible else None
