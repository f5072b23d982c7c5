"""Ernest's way to choose runs: a design that tells the scale-out model most per dollar, then the lowest prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.history import Plan
from lynceus.parts import Surrogate
from lynceus.situation import IntArray, Situation
from lynceus.units import format_money

if TYPE_CHECKING:
    from lynceus.problem import Problem


@dataclass(frozen=True, slots=True)
class OptimalDesign:
    """A few machine counts of every machine type, chosen greedily so that the scale-out model's coefficients vary least (A-optimal).

    Types come in order of price. Gains are counted per dollar of price, as the paper's budget does.
    """

    machines: str = "nodes"
    count: int = 2
    """Runs per machine type."""
    stoppable: bool = False

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the design; nothing when it is done."""
        rows = _design(situation.problem, self.machines, self.count)
        ran = {seen.row for seen in situation.history if seen.outcome.reason is None}
        waiting = [int(row) for row in rows if situation.open[row] and row not in ran]
        if not waiting:
            return None
        place = int(np.flatnonzero(rows == waiting[0])[0]) + 1
        return Plan(waiting[0], why=f"optimal design {place} of {len(rows)}", stoppable=self.stoppable)


@dataclass(frozen=True, slots=True)
class LowestPredicted:
    """The open row that is predicted to be cheapest among those predicted to keep the limits; the cheapest of all if none is."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """That row; nothing without a model, without an observation, or when all are closed."""
        if surrogate is None or not len(situation.rows) or not situation.open.any():
            return None
        belief = surrogate(situation, seed)
        usd = belief.charge(situation)[0]
        kept = belief.feasible(situation.problem)[0] >= 0.5
        row = int(np.lexsort((usd, ~kept, ~situation.open))[0])
        return Plan(
            row,
            why=f"lowest prediction, {format_money(float(usd[row]))}",
            usd=float(usd[row]),
            probability=float(belief.feasible(situation.problem)[0, row]),
            expected=belief.expected(row),
        )


@lru_cache(maxsize=32)
def _design_of(
    codes: bytes, columns: int, counts: bytes, price: bytes, others: tuple[int, ...], count: int
) -> IntArray:
    coded = np.frombuffer(codes, dtype=np.int64).reshape(-1, columns)
    machines, usd = np.frombuffer(counts, dtype=float), np.frombuffer(price, dtype=float)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, code in enumerate(coded[:, list(others)].tolist()):
        groups.setdefault(tuple(code), []).append(row)
    basis = np.stack([np.ones_like(machines), 1 / machines, np.log(machines), machines], axis=1)
    basis = basis / np.maximum(np.abs(basis).max(axis=0), 1e-12)
    order = sorted(groups.values(), key=lambda rows: float(usd[rows].min()))
    return np.array([row for rows in order for row in _most_telling(basis, usd, rows, count)], dtype=np.int64)


def _most_telling(
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


def _design(problem: Problem, machines: str, count: int) -> IntArray:
    space = problem.space
    names = [parameter.name for parameter in space.parameters]
    counts = np.asarray(space.column(machines), dtype=float) if machines in names else np.ones(len(space))
    others = tuple(place for place, name in enumerate(names) if name != machines)
    codes = np.ascontiguousarray(space.codes, dtype=np.int64)
    return _design_of(codes.tobytes(), codes.shape[1], counts.tobytes(), problem.price.tobytes(), others, count)
