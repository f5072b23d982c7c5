"""Successive halving over the fraction of the data (Jamieson and Talwalkar 2016; Hyperband's inner loop), as a start for a planner."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State, feasible_runs
from lynceus.policy.designs import latin_hypercube
from lynceus.problem.data_fraction import configurations, row_shares
from lynceus.problem.problem import Problem
from lynceus.space.column import IntArray
from lynceus.trial.order import Plan
from lynceus.trial.outcome import Observation


@dataclass(frozen=True, slots=True)
class SuccessiveHalving:
    """Many configurations on the smallest fraction, the best 1/η of them on the next one, and so on.

    A configuration is better if its run missed the constraints by less, and among those that met them if its objective is better: an
    accuracy that only runs on more data reach does not end a configuration.
    """

    count: int = 27
    """Configurations on the smallest fraction."""
    eta: int = 3
    """One in so many is promoted to the next fraction."""
    stoppable: bool = False
    tries: int = 100

    def __post_init__(self) -> None:
        if self.count < 1 or self.eta < 2:
            raise ValueError(f"count is {self.count} and eta {self.eta}; give at least 1 configuration and an eta of 2")

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next run of the lowest unfinished rung; None when all rungs are complete."""
        problem = state.problem
        testable = np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable
        group = configurations(problem.space, problem.fraction)
        rungs = np.unique(row_shares(problem)[testable])
        busy = {seen.row for seen in state.observations} | {order.row for order in state.pending}
        chosen = self._first(state, np.flatnonzero(testable & (row_shares(problem) == rungs[0])), seed)
        for place, share in enumerate(rungs):
            rows = [
                row for row in self._rows(group[chosen], group, testable & (row_shares(problem) == share)) if row >= 0
            ]
            waiting = [row for row in rows if row not in busy and state.open[row]]
            if waiting:
                why = f"successive halving on {share:.3g} of the data, {len(rows)} configurations"
                return Plan(int(waiting[0]), why=why, stoppable=self.stoppable)
            if any(order.row in rows for order in state.pending):
                return None
            keep = self.count // self.eta ** (place + 1)
            if keep < 1:
                return None
            chosen = self._best(state, np.array(rows, dtype=np.int64))[:keep]
        return None

    def _first(self, state: State, rows: IntArray, seed: int) -> IntArray:
        """A Latin hypercube of configurations on the smallest fraction."""
        mask = np.zeros(len(state.problem.space), dtype=bool)
        mask[rows] = True
        problem = replace(state.problem, testable=mask)
        return latin_hypercube(problem.space, min(self.count, len(rows)), self.tries, seed, mask.tobytes())

    @staticmethod
    def _rows(wanted: IntArray, group: IntArray, here: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
        """The row of each configuration on this rung, in order; −1 where the table lacks it."""
        of_group = {int(group[row]): int(row) for row in np.flatnonzero(here)}
        return [of_group.get(int(one), -1) for one in wanted]

    @staticmethod
    def _best(state: State, rows: IntArray) -> IntArray:
        """The rows that ran to their end, best first."""
        problem = replace(state.problem, constraints=(), answerable=None)
        found: dict[int, tuple[float, float]] = {}
        for seen in state.observations:
            values = feasible_runs(problem, (seen,))
            if values:
                found[seen.row] = (_missed_by(state.problem, seen), values[0][1])
        return np.array(sorted((row for row in rows.tolist() if row in found), key=found.__getitem__), dtype=np.int64)


def _missed_by(problem: Problem, seen: Observation) -> float:
    """By how much a run missed the constraints, each relative to its bound; 0 when it met them all."""
    outcome = seen.outcome
    own = {"time": outcome.seconds, "cost": problem.cost(seen.row, outcome.seconds), **outcome.metrics}
    total = 0.0
    for constraint in problem.constraints:
        excess = own.get(constraint.metric, np.nan) - constraint.bound
        short = -excess if constraint.at_least else excess
        total += np.inf if np.isnan(short) else max(short, 0.0) / max(abs(constraint.bound), 1e-12)
    return float(total)
