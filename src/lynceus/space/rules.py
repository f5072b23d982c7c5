"""Which rows are allowed, what they cost, and which columns of a table are needed."""

from collections.abc import Mapping, Sequence

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import BoolArray, Cell, Column, FloatArray, listed
from lynceus.space.derived import Computed, Derived, Joined, Mapped
from lynceus.space.enumeration import row_numbers
from lynceus.space.expression import Expression
from lynceus.space.parameter import Parameter


def allowed(columns: Mapping[str, Column], forbid: Sequence[str]) -> tuple[BoolArray, tuple[str, ...]]:
    """Which rows ``[q]`` no expression forbids, and a note for each expression that forbids none."""
    if isinstance(forbid, str):
        raise InputError(f"forbid is {shown(forbid)}, but a list of expressions is needed: [{shown(forbid)}].")
    size = len(next(iter(columns.values())))
    kept, notes = np.ones(size, dtype=np.bool_), []
    for number, text in enumerate(forbid, start=1):
        expression = Expression.parse(text, f"forbid, entry {number}:")
        hit = expression.mask(columns)
        if not hit.any():
            notes.append(f"forbid, entry {number}: {shown(expression.text)} forbids no configuration.")
        remaining = kept & ~hit
        if not remaining.any():
            raise InputError(
                f"forbid, entry {number}: {shown(expression.text)} removes the last {int(kept.sum()):,} of {size:,} "
                "configurations, so none is left: relax it or an entry before it."
            )
        kept = remaining
    return kept, tuple(notes)


def hourly_price(columns: Mapping[str, Column], price: str | float, parameters: Sequence[Parameter]) -> FloatArray:
    """Dollars per hour ``[q]``."""
    named = isinstance(price, str) and price in columns
    column = columns[str(price)] if named else Expression.parse(price, "price").evaluate(columns)
    wrong = np.array([isinstance(cell, bool | str) or cell is None for cell in column.tolist()])
    if not wrong.any():
        hourly = column.astype(np.float64)
        wrong = ~(np.isfinite(hourly) & (hourly > 0))
    if wrong.any():
        rows = np.flatnonzero(wrong)
        first = int(rows[0])
        at = ", ".join(
            f"{one.name}={columns[one.name][first]}" for one in parameters if columns[one.name][first] is not None
        )
        absent = [one for one in parameters if columns[one.name][first] is None]
        if column.tolist()[first] is None and absent:
            raise InputError(
                f"The price {shown(price)} has no value in {row_numbers(rows)} ({at}), where {absent[0].name} does not exist; "
                f"give both cases, such as '0.1 * {absent[0].name} if {absent[0].when} else 0.1'."
            )
        raise InputError(
            f"The price {shown(price)} is {shown(column.tolist()[first])} in {row_numbers(rows)} ({at}), "
            "but dollars per hour above 0 are needed."
        )
    return hourly


def need_columns(columns: Mapping[str, object], names: Sequence[str]) -> None:
    """Raise an error for anything but a table of columns, and for a table that lacks one of the named columns."""
    if not isinstance(columns, Mapping):
        raise InputError(f"The table is {shown(columns)}, but columns by name are needed: {{'nodes': [1, 2], ...}}.")
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns) or f" It has {listed(columns)}."
            raise InputError(f"The table has no column {shown(name)}.{hint}")


def names_read(derived: Sequence[Derived], forbid: Sequence[str], price: str | float) -> set[str]:
    """The names that derived columns, forbidding expressions and the price may read from a table."""
    names = {price} if isinstance(price, str) else set()
    texts = [
        *([] if isinstance(forbid, str) else forbid),
        *(one.expression for one in derived if isinstance(one, Computed)),
    ]
    for one in derived:
        if isinstance(one, Mapped):
            names.add(one.source)
        if isinstance(one, Joined):
            names |= {one.key} if isinstance(one.key, str) else set(one.key)
    for text in [*texts, price]:
        try:
            names |= set(Expression.parse(text).names)
        except InputError:
            continue  # a column named "Price ($)", or a mistake that is reported where the expression is used
    return names


def refuse_empty_cells(table: Mapping[str, Sequence[Cell]], optional: Sequence[str]) -> None:
    """Raise an error for empty cells (None) in columns that may have none: `optional` ones are conditional parameters and features."""
    for name, cells in table.items():
        empty = np.flatnonzero([cell is None for cell in cells])
        if empty.size and name not in optional:
            raise InputError(
                f"Column {shown(name)} is empty in {row_numbers(empty)}: fill it in, remove the rows, "
                "or give the parameter a 'when'."
            )
