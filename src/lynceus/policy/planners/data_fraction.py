"""Choosers for subsampled data: a design that runs every data fraction, and a restriction of other choosers to some fractions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State, feasible_runs
from lynceus.policy.answer import BestPredicted
from lynceus.policy.beliefs import answering
from lynceus.policy.designs import Amount, latin_hypercube
from lynceus.policy.interfaces import Chooser
from lynceus.problem.data_fraction import configurations, row_shares
from lynceus.space.column import BoolArray, IntArray
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class AtEveryShare:
    """A Latin hypercube of configurations, each run on every testable fraction of the data, smallest first (Fabulinus).

    An amount given as a share counts configurations, not runs.
    """

    amount: Amount = field(default_factory=lambda: Amount(share=0.03))
    stoppable: bool = False
    """Whether timeouts apply to these runs; the papers run them to the end."""
    shares: int | None = None
    """How many of the smallest fractions are run; None for all of them (the paper)."""
    tries: int = 100

    def __post_init__(self) -> None:
        if self.shares is not None and self.shares < 1:
            raise ValueError(f"shares is {self.shares}; give at least 1, the smallest fraction")

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next run of the design; None when it is complete."""
        if self.amount.spent(state):
            return None
        problem = state.problem
        allowed = _allowed(state, self.shares)
        listed = self._rows(state, allowed, seed)
        ran = {seen.row for seen in state.observations if seen.outcome.reason is None}
        ran.update(order.row for order in state.pending)
        for place, row in enumerate(listed.tolist(), start=1):
            if state.open[row] and row not in ran:
                on = "" if problem.fraction is None else f" on {row_shares(problem)[row]:.3g} of the data"
                return Plan(row, why=f"Latin hypercube{on}, {place} of {len(listed)}", stoppable=self.stoppable)
        return None

    def _rows(self, state: State, allowed: BoolArray, seed: int) -> IntArray:
        """The design `[d]`: configuration by configuration, fractions ascending."""
        problem = state.problem
        group = configurations(problem.space, problem.fraction)
        # One row represents each configuration: the one with the largest fraction that the design may run.
        order = np.lexsort((-row_shares(problem), group))
        order = order[allowed[order]]
        representatives = order[np.unique(group[order], return_index=True)[1]]
        mask = np.zeros(len(problem.space), dtype=bool)
        mask[representatives] = True
        count = self.amount.rows(replace(problem, testable=mask))
        chosen = latin_hypercube(problem.space, count, self.tries, seed, mask.tobytes())
        runs = [np.flatnonzero(allowed & (group == group[row])) for row in chosen]
        return np.concatenate([rows[np.argsort(row_shares(problem)[rows], kind="stable")] for rows in runs])


@dataclass(frozen=True)
class OnShares:
    """Restricts a chooser to runs on samples of the data, or to runs on all of it. Without samples there is no restriction."""

    which: Literal["samples", "full"]
    chooser: Chooser

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, with all other rows closed."""
        full = row_shares(state.problem) == 1.0
        if full.all() or not full.any():
            return self.chooser(state, surrogate, seed)
        inside = full if self.which == "full" else ~full
        problem = state.problem
        testable = inside if problem.testable is None else inside & problem.testable
        if not testable.any() or not (state.open & inside).any():
            return None
        # Designs read what may be tested from the problem, planners read what is open from the state.
        narrowed = replace(state, problem=replace(problem, testable=testable), open=state.open & inside)
        return self.chooser(narrowed, surrogate, seed)


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """Runs the configuration that would be recommended on all data, once, with some runs on samples between two such checks.

    Samples cannot show everything: a configuration that is cheap on half of the data may be slow on all of it, because memory or
    credits run out. One run tells, for about the limit on cost, and the model learns from it about similar configurations.

    An answer must be sure of the constraints, a check need not be. Once the answer has run, the best row that is likely to keep them is
    checked, if it is predicted to beat every check so far; otherwise one failed check, which makes the model unsure of all
    similar rows, would end the checks.
    """

    every: int = 10
    """Runs between two checks, and before the first one."""
    answer: BestPredicted = field(default_factory=BestPredicted)
    likely: float = 0.5
    """Probability of keeping the constraints from which a row is checked that is no answer yet; 1 for answers only."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The row to check; None when no check is due, or none would tell anything."""
        problem = state.problem
        full = row_shares(problem) == 1.0
        if full.all() or not (state.open & full).any() or self._since_last(state) < self.every:
            return None
        row = self.answer(state, surrogate, seed)
        if row is not None and state.open[row] and full[row]:
            return Plan(row, why="recommended now, and not yet run on all data", stoppable=True)
        checked = [value for row, value in feasible_runs(problem, state.observations) if full[row]]
        if surrogate is None or not checked or self.likely >= 1.0:
            return None
        row = self._likely_better(state, answering(surrogate)(state, seed), full, min(checked))
        return None if row is None else Plan(row, why="likely to beat what ran on all data", stoppable=True)

    def _likely_better(self, state: State, prediction: Prediction, full: BoolArray, best: float) -> int | None:
        """The row with the best predicted objective among those that are open, likely to keep the constraints, and better than `best`."""
        problem = state.problem
        value = prediction.objective(problem)[0]
        found = state.open & full & (prediction.feasible(problem)[0] >= self.likely) & (value < best)
        if problem.answerable is not None:
            found &= problem.answerable
        return int(np.argmin(np.where(found, value, np.inf))) if found.any() else None

    def _since_last(self, state: State) -> int:
        """Runs on samples since the last run on all data."""
        rows = [seen.row for seen in state.observations] + [order.row for order in state.pending]
        checks = [place for place, row in enumerate(rows, start=1) if row_shares(state.problem)[row] == 1.0]
        return len(rows) - (checks[-1] if checks else 0)


def _allowed(state: State, shares: int | None) -> BoolArray:
    """Rows that a design may run, including those that ran already `[q]`."""
    problem = state.problem
    testable = np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable
    smallest = np.unique(row_shares(problem)[testable])[:shares]
    return np.asarray(testable & (row_shares(problem) <= smallest[-1]))
