"""Choosers that know of the data fraction: a design that meets every share, and a rule that keeps others to some shares."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lynceus.choose.designs import Amount, latin_hypercube
from lynceus.fraction import configurations
from lynceus.history import Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.situation import BoolArray, IntArray, Situation


@dataclass(frozen=True, slots=True)
class AtEveryShare:
    """A Latin hypercube of configurations, each run on every share of the data that may be tested, smallest first (Fabulinus).

    An amount given as a share counts configurations, not runs.
    """

    amount: Amount = field(default_factory=lambda: Amount(share=0.03))
    stoppable: bool = False
    """Whether timeouts apply to these runs; the papers run them to the end."""
    shares: int | None = None
    """How many of the smallest shares are run; nothing: all of them (the paper)."""
    tries: int = 100

    def __post_init__(self) -> None:
        if self.shares is not None and self.shares < 1:
            raise ValueError(f"shares is {self.shares}; a design runs at least the smallest share")

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next run of the design; nothing when it is done."""
        if self.amount.spent(situation):
            return None
        problem = situation.problem
        allowed = _allowed(situation, self.shares)
        listed = self._rows(situation, allowed, seed)
        ran = {seen.row for seen in situation.history if seen.outcome.reason is None}
        ran.update(order.row for order in situation.pending)
        for place, row in enumerate(listed.tolist(), start=1):
            if situation.open[row] and row not in ran:
                on = "" if problem.fraction is None else f" on {problem.share[row]:.3g} of the data"
                return Plan(row, why=f"Latin hypercube{on}, {place} of {len(listed)}", stoppable=self.stoppable)
        return None

    def _rows(self, situation: Situation, allowed: BoolArray, seed: int) -> IntArray:
        """The design `[d]`: configuration by configuration, shares ascending."""
        problem = situation.problem
        group = configurations(problem.space, problem.fraction)
        # One row stands for each configuration: that on the largest share which the design may run.
        order = np.lexsort((-problem.share, group))
        order = order[allowed[order]]
        stands = order[np.unique(group[order], return_index=True)[1]]
        mask = np.zeros(len(problem.space), dtype=bool)
        mask[stands] = True
        count = self.amount.rows(replace(problem, testable=mask))
        chosen = latin_hypercube(problem.space, count, self.tries, seed, mask.tobytes())
        runs = [np.flatnonzero(allowed & (group == group[row])) for row in chosen]
        return np.concatenate([rows[np.argsort(problem.share[rows], kind="stable")] for rows in runs])


@dataclass(frozen=True)
class OnShares:
    """Let a chooser see only runs on samples of the data, or only runs on all of it. Where nothing is a sample, all is shown."""

    which: Literal["samples", "full"]
    chooser: Chooser

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, were all other rows closed."""
        full = situation.problem.share == 1.0
        if full.all() or not full.any():
            return self.chooser(situation, surrogate, seed)
        inside = full if self.which == "full" else ~full
        problem = situation.problem
        testable = inside if problem.testable is None else inside & problem.testable
        if not testable.any() or not (situation.open & inside).any():
            return None
        # Designs ask the problem what may be tested, planners ask the situation what is open.
        narrowed = replace(situation, problem=replace(problem, testable=testable), open=situation.open & inside)
        return self.chooser(narrowed, surrogate, seed)


def _allowed(situation: Situation, shares: int | None) -> BoolArray:
    """Rows that a design may run, whether they ran already or not `[q]`."""
    problem = situation.problem
    testable = np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable
    smallest = np.unique(problem.share[testable])[:shares]
    return np.asarray(testable & (problem.share <= smallest[-1]))
