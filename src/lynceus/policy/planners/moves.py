"""Scout's search: move from the best run to the configuration that most probably improves on it, until none probably does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.move_classes import MoveClasses
from lynceus.models.state import State, feasible_runs
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class LikeliestMove:
    """Runs the row with the largest probability of improvement: to cost less than the incumbent and to be in time."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The likeliest row; None before the first run and when no row is open."""
        if not isinstance(surrogate, MoveClasses):
            raise ValueError("likeliest-move needs the surrogate move-classes")
        if not state.open.any() or not len(state.rows):
            return None
        start = _start(state)
        seconds = float(state.seconds[np.flatnonzero(state.rows == start)[-1]])
        limit_s = state.timeout_s_of(np.arange(len(state.open)))
        chance = surrogate.chance(state, start, np.maximum(limit_s, 0.0) / max(seconds, 1e-9))
        row = int(np.argmax(np.where(state.open, chance, -1.0)))
        prediction = surrogate(state, seed)
        return Plan(
            row,
            why=f"improves on the best with a chance of {chance[row]:.0%}, by moves of other jobs",
            score=float(chance[row]),
            probability=float(chance[row]),
            usd=float(prediction.charge(state)[0, row]),
            expected=prediction.expected(row),
        )


@dataclass(frozen=True, slots=True)
class UnlikelyMove:
    """Stop when no move improves with at least this probability (Scout)."""

    probability: float = 0.2
    after: int = 3
    """Not before this many runs."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """The reason, once the likeliest move is not likely enough."""
        if plan is None or plan.expected is None or len(state.observations) < self.after:
            return None
        if plan.score >= self.probability:
            return None
        return f"no move is likely to improve: the best has a chance of {plan.score:.0%}, below {self.probability:.0%}"


def _start(state: State) -> int:
    """The row of the best run; while none met the constraints, of the fastest."""
    runs = feasible_runs(state.problem, state.observations)
    if runs:
        return min(runs, key=lambda run: run[1])[0]
    return int(state.rows[int(np.argmin(state.seconds))])
