"""Cells: a column in which some rows may be None, in the form that expressions compute with."""

from dataclasses import dataclass

import numpy as np

from lynceus.space.column import EXACT, BoolArray, Cell, Column, IntArray, as_column


@dataclass(frozen=True)
class Cells:
    """A column in which some rows may be None."""

    data: Column
    """[q]; a filler value where ``missing``."""
    missing: BoolArray
    """[q]"""

    @property
    def text(self) -> bool:
        """Whether the values are not simply numbers or booleans."""
        return self.data.dtype == object

    def take(self, rows: IntArray) -> "Cells":
        """These rows alone."""
        return Cells(self.data[rows], self.missing[rows])


def cells_of(values: object) -> Cells:
    """Cells of a column or of any sequence of plain values."""
    column = values if isinstance(values, np.ndarray) else as_column(list(values))  # type: ignore[call-overload]
    if column.dtype != object:
        return present(column)
    missing = np.asarray(column == None, dtype=np.bool_)  # noqa: E711 (for each cell)
    if not missing.any():
        return Cells(column, missing)
    return _filled(as_column(column[~missing].tolist()), missing)


def _filled(values: Column, missing: BoolArray) -> Cells:
    data = np.empty(len(missing), dtype=values.dtype)
    data[~missing] = values
    data[missing] = "" if values.dtype == object else 0
    return Cells(data, missing)


def repeated(value: Cell, count: int) -> Cells:
    """One value in every row; whole numbers that float64 cannot hold exactly become floats."""
    if value is None:
        return Cells(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        value = float(value)
    if isinstance(value, str):
        return present(objects([value] * count))
    return present(np.full(count, value))


def present(data: Column) -> Cells:
    """A column without any None."""
    return Cells(data, np.zeros(len(data), dtype=np.bool_))


def objects(values: list[str]) -> Column:
    """Texts as an object column."""
    data = np.empty(len(values), dtype=object)
    data[:] = values
    return data


def whole_numbers(cells: Cells) -> bool:
    """Whether numeric cells are integers or booleans."""
    return cells.data.dtype != np.float64


def truth(cells: Cells) -> BoolArray:
    """[q]: truth as Python defines it; None is false."""
    return np.asarray(cells.data.astype(np.bool_) & ~cells.missing)


def equal(left: Cells, right: Cells) -> BoolArray:
    """[q]: both None, or both present and equal."""
    if left.text != right.text:
        same = np.equal(left.data.astype(object), right.data.astype(object)).astype(np.bool_)
    else:
        same = np.equal(left.data, right.data).astype(np.bool_)
    return np.where(left.missing | right.missing, left.missing & right.missing, same)
