"""Timeout rules: the time after which a run cannot be recommended any more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.state import State
from lynceus.trial.order import Plan, Purpose
from lynceus.trial.outcome import End

_OF_BUDGET = 0.1
"""The share of the budget that a first run beyond the deadline may cost."""


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
    keep it; if it does not, they hardly will. A suggestion of earlier jobs is not meant: they promise that it keeps the deadline. The first
    run after such ones is, while none has kept the limits."""
    overtime_share: float = math.inf
    """The first run goes on beyond the deadline only until it has cost this share of what a configuration of average price (the
    geometric mean) costs until the deadline, and at most a tenth of the budget. So it does where it is cheap beside the runs that it
    may spare."""

    def __post_init__(self) -> None:
        if not self.overtime >= 1.0:
            raise ValueError(f"overtime is a multiple of the deadline; got {self.overtime}, give 1 or more")
        if not self.overtime_share >= 0.0:
            raise ValueError(f"overtime_share is a share of dollars; got {self.overtime_share}, give 0 or more")

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop."""
        if not (plan.stoppable or self.first_runs_too):
            return math.inf
        if self.slack != 1.0:
            state = replace(state, best=self.slack * state.best)
        timeout_s = max(float(state.timeout_s_of(np.array([plan.row]))[0]), 0.0)
        if self._is_first(state, plan):
            timeout_s *= self._overtime(state, plan.row)
        return at_tick(timeout_s, self.every_s)

    def _is_first(self, state: State, plan: Plan) -> bool:
        """Whether this is the first run that earlier jobs did not suggest, and none of those has kept the limits."""
        orders = (*(seen.order for seen in state.observations), *state.pending)
        suggested = all(one.plan.purpose is Purpose.HISTORY for one in orders)
        return suggested and plan.purpose is not Purpose.HISTORY and bool(np.isnan(state.best[0]))

    def _overtime(self, state: State, row: int) -> float:
        """How many times its timeout the first run may take, 1 or more."""
        price, deadline_s = state.problem.price, state.problem.deadline_s
        allowed_usd = self.overtime_share * float(np.exp(np.log(price).mean())) * deadline_s
        most_s = min(allowed_usd, _OF_BUDGET * float(state.left[0])) / float(price[row])
        return max(1.0, min(self.overtime, most_s / deadline_s)) if math.isfinite(deadline_s) else 1.0


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
