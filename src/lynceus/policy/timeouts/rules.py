"""Timeout rules: the time after which a run cannot be recommended any more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.state import State
from lynceus.trial.order import Plan
from lynceus.trial.outcome import End


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
    """Multiple of the incumbent's cost at which a run is stopped (NO-INFO of ICDCS'20: 2)."""
    overtime: float = 1.0
    """Multiple of the deadline at which the very first run is stopped. If it ends soon after the deadline, similar configurations may
    keep it; if it does not, they hardly will."""

    def __post_init__(self) -> None:
        if not self.overtime >= 1.0:
            raise ValueError(f"overtime is a multiple of the deadline; got {self.overtime}, give 1 or more")

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop."""
        if not (plan.stoppable or self.first_runs_too):
            return math.inf
        if self.slack != 1.0:
            state = replace(state, best=self.slack * state.best)
        timeout_s = max(float(state.timeout_s_of(np.array([plan.row]))[0]), 0.0)
        if not state.observations and not state.pending:
            timeout_s *= self.overtime
        return at_tick(timeout_s, self.every_s)


@dataclass(frozen=True, slots=True)
class FastestTimeout:
    """Stop a run that takes a multiple of the fastest finished one, whatever it costs (iTuned: 2)."""

    slack: float = 2.0
    first_runs_too: bool = False

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop; infinite before the first finished run."""
        if not (plan.stoppable or self.first_runs_too):
            return math.inf
        finished = (seen.outcome.seconds for seen in state.observations if seen.outcome.end is End.FINISHED)
        return self.slack * min(finished, default=math.inf)


def at_tick(timeout_s: float, every_s: float) -> float:
    """The first moment at or after `timeout_s` at which a job that is checked every `every_s` seconds is looked at.

    >>> at_tick(31.0, 30.0), at_tick(30.0, 30.0), at_tick(31.0, 0.0)
    (60.0, 30.0, 31.0)
    """
    if not every_s or not math.isfinite(timeout_s):
        return timeout_s
    return math.ceil(timeout_s / every_s - 1e-9) * every_s
