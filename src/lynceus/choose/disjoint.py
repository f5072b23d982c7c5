"""Disjoint optimisation: first the job's parameters on a reference cluster, then the cluster for those parameters (ICDCS'20, §III)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.history import End, Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.randomness import generator
from lynceus.situation import BoolArray, Situation, feasible_runs


@dataclass(frozen=True)
class Disjoint:
    """Let a chooser see only the reference cluster until every row of it has run, then only the best parameters found there.

    The reference cluster is drawn by the study's luck. Without a feasible run on it, the cheapest run stands for the best.
    """

    chooser: Chooser
    job: tuple[str, ...]
    """Parameters of the job itself; all others describe the cluster. Those that a space lacks are ignored."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, were all other rows closed; nothing when both steps are done."""
        space = situation.problem.space
        names = [parameter.name for parameter in space.parameters]
        own = [place for place, name in enumerate(names) if name in self.job]
        machine = [place for place, name in enumerate(names) if name not in self.job]
        # The first cluster of a random order is the reference; the next one, should every run on it have failed.
        for reference in generator(seed, "reference cluster").permutation(len(space)):
            here = _alike(space.codes, int(reference), machine)
            plan = self._within(situation, here, surrogate, seed)
            if plan is not None:
                return plan
            best = _best_of(situation, here)
            if best is not None:
                return self._within(situation, _alike(space.codes, best, own), surrogate, seed)
        return None

    def _within(self, situation: Situation, rows: BoolArray, surrogate: Surrogate | None, seed: int) -> Plan | None:
        inside = situation.open & rows
        return self.chooser(replace(situation, open=inside), surrogate, seed) if inside.any() else None


def _alike(codes: np.ndarray[tuple[int, int], np.dtype[np.int64]], row: int, columns: list[int]) -> BoolArray:
    """Rows that agree with one row in some columns."""
    return np.asarray((codes[:, columns] == codes[row, columns]).all(axis=1))


def _best_of(situation: Situation, rows: BoolArray) -> int | None:
    kept = [(value, row) for row, value in feasible_runs(situation.problem, situation.history) if rows[row]]
    if kept:
        return min(kept)[1]
    ran = [
        (situation.problem.cost(seen.row, seen.outcome.seconds), seen.row)
        for seen in situation.history
        if rows[seen.row] and seen.outcome.end is End.FINISHED
    ]
    return min(ran)[1] if ran else None
