"""Initial designs: which configurations to run before there is a model.

A design is a list of rows that depends on the space and the study's seed alone. It proposes the first of its rows that is still
open, so a resumed study continues with the same list and no state is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lynceus.errors import InputError
from lynceus.models.interfaces import Surrogate
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.trial.order import Plan

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.table import Space


_MANY = 1_000
"""Designs with more rows are not compared with others: the distances of all pairs would not fit into memory."""


@dataclass(frozen=True, slots=True)
class Amount:
    """How large a design is: by count, as a fraction of the space, or until a cost is reached."""

    count: int | None = None
    share: float | None = None
    """Fraction of the configurations; never fewer than the space has parameters (ICDCS'20: max(3 % of the space, dimensions))."""
    usd: float | None = None
    """Continue until the runs have been charged this many dollars (Nephele)."""
    budget_share: float | None = None
    """Continue until this fraction of the study's budget is spent; without a budget, 3 % of the configurations."""

    def __post_init__(self) -> None:
        given = [value for value in (self.count, self.share, self.usd, self.budget_share) if value is not None]
        if len(given) != 1 or given[0] <= 0:
            raise InputError(
                f"initial design: give exactly one positive number (count, share, usd or budget_share), not {self}."
            )

    def rows(self, problem: Problem) -> int:
        """The largest number of rows, of those that may be tested."""
        most = int(_testable(problem).sum())
        if self.count is not None:
            return min(self.count, most)
        endless = self.budget_share is not None and math.isinf(problem.budget.usd)
        share = 0.03 if endless else self.share
        if share is not None:
            return min(max(math.floor(share * most + 0.5), len(problem.space.parameters)), most)
        return most

    def spent(self, state: State) -> bool:
        """Whether the budget of the design is used up."""
        usd = self.usd
        if self.budget_share is not None:
            usd = self.budget_share * state.problem.budget.usd
        return usd is not None and sum(seen.outcome.charged_usd for seen in state.observations) >= usd


@dataclass(frozen=True, slots=True)
class LatinHypercube:
    """Every value of a parameter occurs about equally often; the best of several hypercubes by smallest distance (maximin)."""

    amount: Amount = field(default_factory=lambda: Amount(share=0.03))
    stoppable: bool = False
    """Whether timeouts apply to these runs; the papers run them to the end."""
    cheapest_first: bool = False
    """Run the design in order of price, so that an early feasible run sets a timeout for the more expensive ones."""
    tries: int = 100

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the hypercube; None when it is complete."""
        problem = state.problem
        mask = None if problem.testable is None else problem.testable.tobytes()
        rows = latin_hypercube(problem.space, self.amount.rows(problem), self.tries, seed, mask)
        return _next_of("Latin hypercube", rows, state, self, cheapest_first=self.cheapest_first)


@dataclass(frozen=True, slots=True)
class UniformRows:
    """Rows drawn uniformly without replacement."""

    amount: Amount
    stoppable: bool = False
    cheapest_first: bool = False

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the draw; None when it is complete."""
        order = generator(seed, "uniform design").permutation(np.flatnonzero(_testable(state.problem)))
        rows = order[: self.amount.rows(state.problem)]
        return _next_of("random start", rows, state, self, cheapest_first=self.cheapest_first)


@dataclass(frozen=True, slots=True)
class QuasiRandom:
    """A scrambled Halton sequence, each point moved to the nearest configuration that is not taken (CherryPick)."""

    amount: Amount = field(default_factory=lambda: Amount(count=3))
    stoppable: bool = False
    cheapest_first: bool = False

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the sequence; None when it is complete."""
        problem = state.problem
        mask = None if problem.testable is None else problem.testable.tobytes()
        rows = _halton(problem.space, self.amount.rows(problem), seed, mask)
        return _next_of("quasi-random start", rows, state, self, cheapest_first=self.cheapest_first)


@dataclass(frozen=True, slots=True)
class CheapFirst:
    """The cheapest (by price per second) of a random pool, in order of price."""

    amount: Amount = field(default_factory=lambda: Amount(count=3))
    pool: int | None = 12
    """How many rows are drawn; None for all, that is, the cheapest of the space."""
    stoppable: bool = True

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next row of the list; None when it is complete."""
        problem = state.problem
        mask = None if problem.testable is None else problem.testable.tobytes()
        rows = _cheapest(problem.space, self.amount.rows(problem), self.pool, seed, mask)
        return _next_of("cheap start", rows, state, self)


@lru_cache(maxsize=256)
def _cheapest(space: Space, count: int, pool: int | None, seed: int, testable: bytes | None) -> IntArray:
    """The cheapest rows of a random pool, in order of price; cached, because every decision asks for them."""
    allowed = np.ones(len(space), dtype=bool) if testable is None else np.frombuffer(testable, dtype=bool)
    drawn = generator(seed, "cheap first").permutation(np.flatnonzero(allowed))[:pool]
    return drawn[np.argsort(space.price_per_second[drawn], kind="stable")][:count]


@lru_cache(maxsize=16)
def _coordinates(space: Space) -> FloatArray:
    """Every configuration as a point of the unit cube, one axis per parameter, values equally spaced `[q, parameters]`."""
    widths = np.array([len(parameter.values) for parameter in space.parameters])
    # An inactive conditional parameter is at the middle of its axis, equally near to all values.
    return np.asarray(np.where(space.codes >= 0, space.codes + 0.5, widths / 2) / widths)


@lru_cache(maxsize=256)
def latin_hypercube(space: Space, count: int, tries: int, seed: int, testable: bytes | None = None) -> IntArray:
    """Rows of the best of `tries` hypercubes with `count` points, snapped to configurations that may be tested."""
    if count < 1 or tries < 1:
        raise ValueError(f"a Latin hypercube needs at least one point and one try, got {count} and {tries}")
    points = _coordinates(space)
    grid = _Grid.of(space, testable)
    rng = generator(seed, "latin hypercube")
    best_rows, best_distance = np.zeros(0, dtype=np.int64), -1.0
    # Maximin is a refinement: for designs of hundreds of rows a few tries are enough.
    for _ in range(1 if count > _MANY else max(1, min(tries, 20 * _MANY // count))):
        strata = np.stack([rng.permutation(count) for _ in range(points.shape[1])], axis=1)
        rows = grid.snap((strata + rng.random(strata.shape)) / count)
        distance = 0.0 if count > _MANY else _smallest_gap(points[rows])
        if distance > best_distance:
            best_rows, best_distance = rows, distance
    return best_rows


def _smallest_gap(points: FloatArray) -> float:
    gaps = np.abs(points[:, None] - points[None]).sum(axis=2)[np.triu_indices(len(points), 1)]
    return float(gaps.min()) if len(gaps) else 0.0


@lru_cache(maxsize=256)
def _halton(space: Space, count: int, seed: int, testable: bytes | None) -> IntArray:
    from scipy.stats import qmc  # takes half a second to import, and only this design needs it

    wanted = qmc.Halton(len(space.parameters), rng=generator(seed, "halton")).random(count)
    return _Grid.of(space, testable).snap(wanted)


@dataclass(frozen=True, eq=False)
class _Grid:
    """The configurations that may be tested, as points of the unit cube."""

    rows: IntArray
    """`[t]`"""
    points: FloatArray
    """`[t, parameters]`"""
    widths: IntArray
    """Values per parameter."""
    row_of: dict[tuple[int, ...], int] | None
    """Position in `rows` by codes; None when a parameter can be inactive, because such rows lie between the cells."""

    @classmethod
    def of(cls, space: Space, testable: bytes | None) -> _Grid:
        rows = np.arange(len(space)) if testable is None else np.flatnonzero(np.frombuffer(testable, dtype=bool))
        codes = space.codes[rows]
        whole = bool((codes >= 0).all())
        row_of = {tuple(code): i for i, code in enumerate(codes.tolist())} if whole else None
        widths = np.array([len(parameter.values) for parameter in space.parameters])
        return cls(rows, _coordinates(space)[rows], widths, row_of)

    def snap(self, wanted: FloatArray) -> IntArray:
        """The nearest row to each point, each row at most once (sum of distances along the axes)."""
        free = np.ones(len(self.points), dtype=bool)
        chosen = np.empty(len(wanted), dtype=np.int64)
        cells = np.minimum(wanted * self.widths, self.widths - 1).astype(np.int64).tolist()
        for i, point in enumerate(wanted):
            # The point's own cell is the nearest one; only where it is taken or missing are all rows compared.
            here = -1 if self.row_of is None else self.row_of.get(tuple(cells[i]), -1)
            if here < 0 or not free[here]:
                distance = np.abs(self.points - point).sum(axis=1)
                here = int(np.argmin(np.where(free, distance, np.inf)))
            chosen[i], free[here] = here, False
        return self.rows[chosen]


def _testable(problem: Problem) -> BoolArray:
    return np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable


class _Design(Protocol):
    """What the designs have in common."""

    @property
    def amount(self) -> Amount: ...

    @property
    def stoppable(self) -> bool: ...


def _next_of(name: str, rows: IntArray, state: State, design: _Design, *, cheapest_first: bool = False) -> Plan | None:
    if design.amount.spent(state):
        return None
    if cheapest_first:
        rows = rows[np.argsort(state.problem.price[rows], kind="stable")]
    # Where repeats are allowed, a row that has run stays open; a design runs each of its rows once.
    ran = {seen.row for seen in state.observations if seen.outcome.reason is None}
    ran.update(order.row for order in state.pending)
    waiting = [int(row) for row in rows if state.open[row] and row not in ran]
    if not waiting:
        return None
    place = int(np.flatnonzero(rows == waiting[0])[0]) + 1
    return Plan(waiting[0], why=f"{name} {place} of {len(rows)}", stoppable=design.stoppable)
