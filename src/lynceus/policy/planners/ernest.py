"""How Ernest chooses runs: a design with the most information per dollar for the scale-out model, then the lowest prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.scale_out import machine_types
from lynceus.models.state import State
from lynceus.problem.data_fraction import row_shares
from lynceus.problem.units import format_money
from lynceus.space.column import IntArray
from lynceus.trial.order import Plan

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.table import Space


@dataclass(frozen=True, slots=True)
class OptimalDesign:
    """A few machine counts of every machine type, chosen greedily for the smallest variance of the model's coefficients (A-optimal).

    Types are run in order of price. The reduction of variance counts per dollar of price, as in the paper.
    """

    machines: str = "nodes"
    count: int = 2
    """Runs per machine type."""
    stoppable: bool = False

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the design; None when it is complete."""
        rows = _design(state.problem, self.machines, self.count)
        ran = {seen.row for seen in state.observations if seen.outcome.reason is None}
        waiting = [int(row) for row in rows if state.open[row] and row not in ran]
        if not waiting:
            return None
        place = int(np.flatnonzero(rows == waiting[0])[0]) + 1
        return Plan(waiting[0], why=f"optimal design {place} of {len(rows)}", stoppable=self.stoppable)


@dataclass(frozen=True, slots=True)
class LowestPredicted:
    """The open row with the lowest predicted cost among those that are probably feasible; of all rows if there is none.

    Where only some rows may be recommended (those on all data), only these are candidates while any is open.
    """

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """That row; None without a model, without an observation, or when all rows are closed."""
        if surrogate is None or not len(state.rows) or not state.open.any():
            return None
        prediction = surrogate(state, seed)
        usd = prediction.charge(state)[0]
        probability = prediction.feasible(state.problem)[0]
        answers = state.problem.answerable
        candidates = state.open if answers is None or not (state.open & answers).any() else state.open & answers
        row = int(np.lexsort((usd, probability < 0.5, ~candidates))[0])
        return Plan(
            row,
            why=f"lowest prediction, {format_money(float(usd[row]))}",
            usd=float(usd[row]),
            probability=float(probability[row]),
            expected=prediction.expected(row),
        )


def _design(problem: Problem, machines: str, count: int) -> IntArray:
    """The rows of the design, type by type. A run on a sample of the data costs about that share of the price."""
    return _design_of(problem.space, machines, problem.fraction, (problem.price * row_shares(problem)).tobytes(), count)


@lru_cache(maxsize=32)
def _design_of(space: Space, machines: str, fraction: str | None, price: bytes, count: int) -> IntArray:
    group, basis = machine_types(space, machines, fraction)
    usd = np.frombuffer(price, dtype=float)
    basis = basis / np.maximum(np.abs(basis).max(axis=0), 1e-12)
    types = [np.flatnonzero(group == one).tolist() for one in np.unique(group)]
    order = sorted(types, key=lambda rows: (float(usd[rows].min()), rows[0]))
    return np.array([row for rows in order for row in _most_informative(basis, usd, rows, count)], dtype=np.int64)


def _most_informative(
    basis: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    usd: np.ndarray[tuple[int], np.dtype[np.float64]],
    rows: list[int],
    count: int,
) -> list[int]:
    """Greedily, the row that lowers the trace of the coefficients' covariance most per dollar (ridge 10⁻³ while it is singular)."""
    chosen: list[int] = []
    information = 1e-3 * np.eye(basis.shape[1])
    while len(chosen) < min(count, len(rows)):
        before = float(np.trace(np.linalg.inv(information)))
        gains = {
            row: (before - float(np.trace(np.linalg.inv(information + np.outer(basis[row], basis[row]))))) / usd[row]
            for row in rows
            if row not in chosen
        }
        best = max(gains, key=lambda row: gains[row])
        chosen.append(best)
        information = information + np.outer(basis[best], basis[best])
    return chosen
