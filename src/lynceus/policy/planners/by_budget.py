"""Different planners for small and large budgets: improvement per dollar pays off only if many runs follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.policy.interfaces import Chooser
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class ByBudget:
    """One chooser if the budget allows only a few runs, else another.

    The largest improvement per dollar is found among cheap runs. Many cheap runs are a good start, but usually all of them miss the
    deadline for the same reason, and a small budget is spent before a feasible run is known. There, a short path of runs with the
    largest total improvement, whatever its cost, is better (docs/policy.md has the numbers).
    """

    scarce: Chooser
    ample: Chooser
    runs: float = 4.0
    """The budget is scarce, as long as no feasible run is known, if it pays for fewer runs than this, each up to its time limit and on a
    configuration of median price."""
    trials: int = 12
    """Runs are scarce when the budget allows this many or fewer."""

    def __post_init__(self) -> None:
        if not (self.runs >= 0 and self.trials >= 0):
            raise ValueError(f"runs {self.runs} and trials {self.trials} must not be negative")

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The plan of the chooser that fits the budget."""
        return (self.scarce if self._is_scarce(state) else self.ample)(state, surrogate, seed)

    def _is_scarce(self, state: State) -> bool:
        """Decided by the whole budget and not by what is left: a late switch would spend the rest on a single run."""
        problem = state.problem
        if problem.budget.trials is not None and problem.budget.trials <= self.trials:
            return True
        longest_usd = float(np.median(problem.ceiling_usd))
        scarce = math.isfinite(longest_usd) and problem.budget.usd < self.runs * longest_usd
        return scarce and bool(np.isnan(state.best[0]))
