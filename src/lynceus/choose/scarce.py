"""Another planner where runs are few: gain per dollar is for those who can go on, the gain of a whole plan for those who cannot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.history import Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.situation import Situation


@dataclass(frozen=True)
class ByBudget:
    """One chooser if the budget is only for a few runs, else another.

    The largest gain per dollar is found among cheap runs. Many of them in a row are a good start, but what makes one of them late
    mostly makes all of them late, and a small budget is gone before anything feasible is known. A short path of runs that together
    bring most, whatever they cost, is better there (docs/policy.md has the numbers).
    """

    scarce: Chooser
    ample: Chooser
    runs: float = 4.0
    """Money is scarce, as long as nothing feasible is known, when the whole of it pays for fewer runs than this, each up to its limit of
    time and on a configuration of median price."""
    trials: int = 12
    """Runs are scarce when the budget allows so many or fewer."""

    def __post_init__(self) -> None:
        if not (self.runs >= 0 and self.trials >= 0):
            raise ValueError(f"runs {self.runs} and trials {self.trials} must not be negative")

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The plan of the chooser that fits the budget."""
        return (self.scarce if self._is_scarce(situation) else self.ample)(situation, surrogate, seed)

    def _is_scarce(self, situation: Situation) -> bool:
        """Decided by the whole budget and not by what is left: a late change of mind spends the rest on a single run."""
        problem = situation.problem
        if problem.budget.trials is not None and problem.budget.trials <= self.trials:
            return True
        longest_usd = float(np.median(problem.ceiling_usd))
        poor = math.isfinite(longest_usd) and problem.budget.usd < self.runs * longest_usd
        return poor and bool(np.isnan(situation.best[0]))
