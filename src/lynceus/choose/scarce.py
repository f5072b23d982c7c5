"""Another planner where money is scarce: gain per dollar is for those who can go on, the gain of a whole plan for those who cannot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.history import Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.problem import Problem
from lynceus.situation import Situation


@dataclass(frozen=True)
class ByBudget:
    """While nothing feasible is known: one chooser if the budget pays only for a few runs, else the other. Afterwards always the other.

    The largest gain per dollar is found among cheap runs. Many of them in a row are a good start, but what makes one of them late
    mostly makes all of them late, and a small budget is gone before anything feasible is known. A short path of runs that together
    bring most, whatever they cost, is better there (docs/policy.md has the numbers).
    """

    scarce: Chooser
    ample: Chooser
    runs: float = 4.0
    """A budget is scarce when it pays for fewer runs than this, each up to its limit of time, on a configuration of median price."""

    def __post_init__(self) -> None:
        if not self.runs >= 0:
            raise ValueError(f"runs {self.runs} must not be negative")

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The plan of the chooser that fits the budget."""
        chooser = self.scarce if np.isnan(situation.best[0]) and self._is_scarce(situation.problem) else self.ample
        return chooser(situation, surrogate, seed)

    def _is_scarce(self, problem: Problem) -> bool:
        """Decided by the whole budget and not by what is left: a late change of mind spends the rest on a single run."""
        longest_usd = float(np.median(problem.ceiling_usd))
        return math.isfinite(longest_usd) and problem.budget.usd < self.runs * longest_usd
