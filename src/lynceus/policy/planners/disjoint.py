"""Disjoint optimization: first the job's parameters on a reference cluster, then the cluster for those parameters (ICDCS'20, §III)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.seeds import generator
from lynceus.models.state import State, feasible_runs
from lynceus.policy.interfaces import Chooser
from lynceus.space.column import BoolArray
from lynceus.trial.order import Plan
from lynceus.trial.outcome import End


@dataclass(frozen=True)
class Disjoint:
    """Restricts a chooser to a reference cluster until every row of it has run, then to the best parameters found there.

    The reference cluster is drawn at random. Without a feasible run on it, the cheapest run counts as the best.
    """

    chooser: Chooser
    job: tuple[str, ...]
    """Parameters of the job itself; all others describe the cluster. Names that a space does not have are ignored."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, with all other rows closed; None when both steps are complete."""
        space = state.problem.space
        names = [parameter.name for parameter in space.parameters]
        own = [place for place, name in enumerate(names) if name in self.job]
        machine = [place for place, name in enumerate(names) if name not in self.job]
        # The first cluster of a random order is the reference; if every run on it failed, the next one is.
        for reference in generator(seed, "reference cluster").permutation(len(space)):
            here = _equal_in(space.codes, int(reference), machine)
            plan = self._within(state, here, surrogate, seed)
            if plan is not None:
                return plan
            best = _best_of(state, here)
            if best is not None:
                return self._within(state, _equal_in(space.codes, best, own), surrogate, seed)
        return None

    def _within(self, state: State, rows: BoolArray, surrogate: Surrogate | None, seed: int) -> Plan | None:
        inside = state.open & rows
        return self.chooser(replace(state, open=inside), surrogate, seed) if inside.any() else None


def _equal_in(codes: np.ndarray[tuple[int, int], np.dtype[np.int64]], row: int, columns: list[int]) -> BoolArray:
    """Rows that agree with one row in some columns."""
    return np.asarray((codes[:, columns] == codes[row, columns]).all(axis=1))


def _best_of(state: State, rows: BoolArray) -> int | None:
    feasible = [(value, row) for row, value in feasible_runs(state.problem, state.observations) if rows[row]]
    if feasible:
        return min(feasible)[1]
    ran = [
        (state.problem.cost(seen.row, seen.outcome.seconds), seen.row)
        for seen in state.observations
        if rows[seen.row] and seen.outcome.end is End.FINISHED
    ]
    return min(ran)[1] if ran else None
