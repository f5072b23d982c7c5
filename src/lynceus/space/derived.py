"""Derived columns: properties that follow from a configuration, such as the memory of its machine.

Each kind has ``added(known) -> new columns`` and a field ``feature`` that decides whether models use the new columns:
``None`` (the default) takes numbers and booleans and leaves text out, since text only repeats what it was derived from;
``True`` takes all, ``False`` none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import Cell, Column, IntArray, Scalar, as_column, listed, plain
from lynceus.space.expression import Expression

Table = Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]]
"""A small table: columns by name, or a list of rows."""


@dataclass(frozen=True)
class Computed:
    """A column computed by an expression over earlier columns.

    >>> Computed("cores", "nodes * vcpus").added({"nodes": np.array([1, 2]), "vcpus": np.array([4, 4])})
    {'cores': array([4, 8])}
    """

    name: str
    expression: str
    feature: bool | None = None

    def added(self, known: Mapping[str, Column]) -> dict[str, Column]:
        """The new column ``[q]``."""
        return {self.name: Expression.parse(self.expression, f"Computed column {shown(self.name)}:").evaluate(known)}


@dataclass(frozen=True)
class Mapped:
    """A column that gives each value of another column its own value.

    >>> Mapped("ram_gb", "vm", {"small": 2, "large": 8}).added({"vm": np.array(["large", "small"], dtype=object)})
    {'ram_gb': array([8, 2])}
    """

    name: str
    source: str
    mapping: Mapping[Scalar, Scalar] = field(hash=False)
    feature: bool | None = None

    def added(self, known: Mapping[str, Column]) -> dict[str, Column]:
        """The new column ``[q]``; None where the source is inactive."""
        where = f"Mapped column {shown(self.name)}"
        _need(where, self.source, known)
        if not isinstance(self.mapping, Mapping) or not self.mapping:
            raise InputError(f"{where}: mapping is {shown(self.mapping)}, but value: result pairs are needed.")
        values, codes = distinct(known[self.source])
        results: list[Cell] = []
        for value in values:
            if value is not None and value not in self.mapping:
                hint = did_you_mean(value, self.mapping) or f" It has {listed(self.mapping)}."
                raise InputError(f"{where} has no value for {shown(value)} of {shown(self.source)}.{hint}")
            results.append(None if value is None else plain(self.mapping[value], f"{where}, result of {shown(value)}"))
        return {self.name: as_column(results)[codes]}


@dataclass(frozen=True)
class Joined:
    """The columns of a table, such as a machine catalog, joined by one or more keys.

    >>> machines = [{"vm": "small", "ram_gb": 2, "usd": 0.02}, {"vm": "large", "ram_gb": 8, "usd": 0.09}]
    >>> Joined("vm", machines).added({"vm": np.array(["large", "small"], dtype=object)})
    {'ram_gb': array([8, 2]), 'usd': array([0.09, 0.02])}
    """

    key: str | Sequence[str] | Mapping[str, str]
    """The column or columns to join by; ``{"vm_type": "instance_type"}`` when the table calls them differently."""
    table: Table = field(hash=False, repr=False)
    columns: Sequence[str] | None = None
    """Which columns of the table to add; all by default."""
    feature: bool | Sequence[str] | None = None
    """Also a list: only these columns are features."""

    def added(self, known: Mapping[str, Column]) -> dict[str, Column]:
        """The new columns, ``[q]`` each; None where a key is inactive."""
        keys = self._keys()
        where = f"The table joined by {', '.join(keys)}"
        for name in keys:
            _need(where, name, known)
        table = _as_columns(self.table, where)
        for name in [*keys.values(), *(self.columns or ())]:
            if name not in table:
                hint = did_you_mean(name, table) or f" It has {listed(table)}."
                raise InputError(f"{where} has no column {shown(name)}.{hint}")
        added = [name for name in table if name not in keys.values()] if self.columns is None else list(self.columns)
        wanted, codes = _distinct_tuples([known[name] for name in keys])
        rows = _lookup(where, list(keys), [table[name] for name in keys.values()], wanted)
        return {name: as_column([None if row is None else table[name][row] for row in rows])[codes] for name in added}

    def _keys(self) -> dict[str, str]:
        if isinstance(self.key, str):
            return {self.key: self.key}
        keys = dict(self.key) if isinstance(self.key, Mapping) else {name: name for name in self.key}
        if not keys:
            raise InputError("A joined table needs at least one key: name the column to join by.")
        return keys


Derived = Mapped | Joined | Computed


def derive(columns: Mapping[str, Column], derived: Sequence[Derived]) -> tuple[dict[str, Column], list[str]]:
    """All columns with the derived ones added in order, and the names of those that are features."""
    every, features = dict(columns), []
    for one in derived:
        if not isinstance(one, Derived):
            raise InputError(f"{shown(one)} is not a derived column: use Mapped, Joined or Computed.")
        for name, column in one.added(every).items():
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"A derived column is named {shown(name)}, but a text is needed.")
            if name in every:
                raise InputError(
                    f"The derived column {shown(name)} has the name of another column: rename one of them."
                )
            every[name] = column
            text = any(isinstance(cell, str) for cell in distinct(column)[0])
            chosen = one.feature if one.feature is None or isinstance(one.feature, bool) else name in one.feature
            if chosen or (chosen is None and not text):
                features.append(name)
    return every, features


def distinct(column: Column) -> tuple[list[Cell], IntArray]:
    """The different values of a column, and for each row ``[q]`` which of them it has."""
    if column.dtype != object:
        values, codes = np.unique(column, return_inverse=True)
        return values.tolist(), np.reshape(codes, -1)
    places: dict[Cell, int] = {}
    codes = np.array([places.setdefault(cell, len(places)) for cell in column.tolist()], dtype=np.int64)
    return list(places), codes


def _distinct_tuples(columns: Sequence[Column]) -> tuple[list[tuple[Cell, ...]], IntArray]:
    places: dict[tuple[Cell, ...], int] = {}
    rows = zip(*(column.tolist() for column in columns), strict=True)
    codes = np.array([places.setdefault(row, len(places)) for row in rows], dtype=np.int64)
    return list(places), codes


def _lookup(
    where: str, names: Sequence[str], keys: Sequence[Sequence[Cell]], wanted: Iterable[tuple[Cell, ...]]
) -> list[int | None]:
    """The table's row of each wanted key; None for a key with an inactive part."""
    index: dict[tuple[Cell, ...], int] = {}
    for row, key in enumerate(zip(*keys, strict=True)):
        if key in index:
            raise InputError(f"{where} lists {_key(key)} in rows {index[key] + 1} and {row + 1}: keep one of them.")
        index[key] = row
    found: list[int | None] = []
    for key in wanted:
        if None in key:
            found.append(None)
            continue
        if key not in index:
            available = [_key(other) for other in index]
            hint = (
                did_you_mean(_key(key), available)
                or f" It has {', '.join(available[:8])}{', ...' if len(available) > 8 else ''}."
            )
            raise InputError(f"{where} has no row for {', '.join(names)} = {_key(key)}.{hint}")
        found.append(index[key])
    return found


def _key(key: tuple[Cell, ...]) -> str:
    return ", ".join(str(part) for part in key)


def _need(where: str, name: str, known: Mapping[str, Column]) -> None:
    if name not in known:
        hint = did_you_mean(name, known) or f" Known are {listed(known)}."
        raise InputError(f"{where} needs the unknown column {shown(name)}.{hint}")


def _as_columns(table: Table, where: str) -> dict[str, list[Cell]]:
    if isinstance(table, Mapping):
        raw: dict[str, list[object]] = {str(name): list(values) for name, values in table.items()}
    else:
        rows = list(table)
        raw = {str(name): [] for name in (rows[0] if rows else {})}
        for number, row in enumerate(rows, start=1):
            if set(map(str, row)) != set(raw):
                odd = sorted(set(raw) ^ set(map(str, row)))[0]
                raise InputError(
                    f"{where}: rows 1 and {number} differ in the column {shown(odd)}; give every row the same columns."
                )
            for name, value in row.items():
                raw[str(name)].append(value)
    if len({len(values) for values in raw.values()}) > 1 or not raw or not next(iter(raw.values())):
        raise InputError(
            f"{where} is empty or has columns of different lengths: give every row a value in every column."
        )
    return {
        name: [plain(value, f"{where}: column {shown(name)}, row {row}") for row, value in enumerate(values, start=1)]
        for name, values in raw.items()
    }
