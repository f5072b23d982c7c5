"""The search space of another tool as a finite table of configurations.

Lynceus searches a table, other tools search ranges. A range becomes a grid that does not depend on the seed, so that every process of a
study sees the same table; whatever was run off the grid becomes a row of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lynceus.errors import InputError
from lynceus.space.column import Scalar
from lynceus.space.parameter import Categorical, Float, Integer, Parameter
from lynceus.space.table import Space

MOST_ROWS = 10_000
"""Configurations of a table; of a larger grid a balanced sample is taken."""
_MOST_STEPPED = 128
"""Values of an integer or stepped parameter; of more an even selection is taken."""


@dataclass(frozen=True)
class Dimension:
    """One parameter of the other tool, with the values that it may take here."""

    name: str
    kind: Literal["categorical", "integer", "float"]
    choices: tuple[object, ...]
    """The values as the other tool has them, in order."""
    log: bool = False

    @classmethod
    def of_range(
        cls,
        name: str,
        low: float,
        high: float,
        *,
        kind: Literal["integer", "float"],
        step: float | None = None,
        log: bool = False,
        steps: int = 16,
    ) -> Dimension:
        """A range: `steps` values of a continuous one (even on the log scale if `log`), all of a stepped one where they are few.

        >>> Dimension.of_range("rate", 1e-4, 1.0, kind="float", log=True, steps=5).choices
        (0.0001, 0.001, 0.01, 0.1, 1.0)
        >>> Dimension.of_range("nodes", 2, 10, kind="integer", step=4).choices
        (2, 6, 10)
        """
        count = None if step is None else math.floor((high - low) / step + 1e-9) + 1
        if step is not None and count is not None and count <= _MOST_STEPPED:
            values = [low + index * step for index in range(count)]
        else:
            most = _MOST_STEPPED if step is not None else steps
            values = (np.geomspace if log else np.linspace)(low, high, most if high > low else 1).tolist()
            if step is not None:
                values = [low + round((value - low) / step) * step for value in values]
        kept = dict.fromkeys(min(max(value, low), high) for value in values)
        numbers: Iterable[float] = kept if kind == "float" else map(round, kept)
        return cls(name, kind, tuple(float(n) if kind == "float" else int(n) for n in numbers), log)

    def with_choices(self, more: Iterable[object]) -> Dimension:
        """The dimension with further values of numbers; categories have all of theirs."""
        new = set(more) - set(self.choices) if self.kind != "categorical" else set()
        if not new:
            return self
        return Dimension(self.name, self.kind, tuple(sorted({*self.choices, *new}, key=float_of)), self.log)

    def parameter(self) -> Parameter:
        """The parameter of the table."""
        if self.kind == "integer":
            return Integer(self.name, values=tuple(map(int, map(float_of, self.choices))), log=self.log)
        if self.kind == "float":
            return Float(self.name, values=tuple(map(float_of, self.choices)), log=self.log)
        return Categorical(self.name, self._labels())

    def _labels(self) -> tuple[Scalar, ...]:
        """Names of categories: the choices themselves where the table can hold them (not None, not both 1 and True)."""
        plain = all(isinstance(one, str | int | float | bool) for one in self.choices)
        if plain and len(set(self.choices)) == len(self.choices):
            return tuple(one for one in self.choices if isinstance(one, str | int | float | bool))
        return tuple(f"{place}: {one!r}" for place, one in enumerate(self.choices))

    def code(self, choice: object) -> int | None:
        """The place of a value; None if it has none. `True` is not `1`."""
        for place, one in enumerate(self.choices):
            if one is choice or (one == choice and isinstance(one, bool) == isinstance(choice, bool)):
                return place
        return None


def float_of(value: object) -> float:
    """A number of another tool as a float."""
    if isinstance(value, int | float | np.number):
        return float(value)
    raise InputError(f"{value!r} came where a number is needed.")


class CandidateTable:
    """A finite table of configurations in the values of another tool.

    >>> table = CandidateTable([Dimension("vm", "categorical", ("s", None)), Dimension("nodes", "integer", (1, 2))], price="nodes")
    >>> len(table.space), table.choices(3), table.row({"vm": None, "nodes": 2})
    (4, {'vm': None, 'nodes': 2}, 3)
    """

    def __init__(
        self,
        dimensions: Sequence[Dimension],
        *,
        price: str | float = 1.0,
        seen: Iterable[Mapping[str, object]] = (),
        most_rows: int = MOST_ROWS,
    ) -> None:
        """`seen` are configurations that were run: rows of the table, wherever they lie."""
        seen = [point for point in seen if all(one.name in point for one in dimensions)]
        self.dimensions = tuple(one.with_choices(point[one.name] for point in seen) for one in dimensions)
        codes = _grid(dimensions, self.dimensions, most_rows)
        extra = [self._codes(point) for point in seen]
        known = {tuple(row) for row in codes.tolist()}
        self._rows = list(dict.fromkeys([*map(tuple, codes.tolist()), *(one for one in extra if one is not None)]))
        self._place = {codes: row for row, codes in enumerate(self._rows)}
        self.off_grid = len(self._rows) - len(known)
        """Rows that were run off the grid."""
        parameters = [one.parameter() for one in self.dimensions]
        cells = {one.name: [one.values[row[place]] for row in self._rows] for place, one in enumerate(parameters)}
        self.space = Space.from_table(cells, parameters, price=price)

    def choices(self, row: int) -> dict[str, object]:
        """The configuration of a row in the other tool's values."""
        codes = self._rows[row]
        return {one.name: one.choices[code] for one, code in zip(self.dimensions, codes, strict=True)}

    def row(self, point: Mapping[str, object]) -> int | None:
        """The row of a configuration; None if it is not in the table."""
        codes = self._codes(point)
        return None if codes is None else self._place.get(codes)

    def _codes(self, point: Mapping[str, object]) -> tuple[int, ...] | None:
        found = [one.code(point[one.name]) if one.name in point else None for one in self.dimensions]
        codes = tuple(code for code in found if code is not None)
        return codes if len(codes) == len(found) else None


class GivenTable:
    """A space that the user gave, behind the interface of `CandidateTable`."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def choices(self, row: int) -> dict[str, object]:
        """The configuration of a row; inactive parameters are left out."""
        return dict(self.space.point(row))

    def row(self, point: Mapping[str, object]) -> int | None:
        """The row of a configuration; None if it is not in the table. What is no parameter of the space does not count."""
        names = {one.name for one in self.space.parameters}
        try:
            return self.space.row({name: value for name, value in point.items() if name in names})
        except InputError:
            return None


Table = CandidateTable | GivenTable


def _grid(grid: Sequence[Dimension], whole: Sequence[Dimension], most_rows: int) -> np.ndarray:
    """Places among the choices of `whole` [q, p]: all combinations of `grid`, or a sample in which every value occurs equally often."""
    places = [np.array([all_.choices.index(one) for one in few.choices]) for few, all_ in zip(grid, whole, strict=True)]
    if math.prod(map(len, places)) <= most_rows:
        return np.stack([axis.ravel() for axis in np.meshgrid(*places, indexing="ij")], axis=1)
    draw = np.random.default_rng(0)
    columns = [one[draw.permutation(np.arange(most_rows) % len(one))] for one in places]
    return np.stack(columns, axis=1)
