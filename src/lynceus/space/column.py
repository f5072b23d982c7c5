"""Columns: one value per configuration, in the fastest form that keeps the user's values.

A column is a numpy array ``[q]``: ``bool``, ``int64`` or ``float64`` when every value is of that kind, ``object``
otherwise (text, mixed values, or values of a conditional parameter, where ``None`` means "inactive").
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lynceus.errors import InputError, shown

Scalar = str | int | float | bool
"""What a parameter's value may be."""
Cell = Scalar | None
"""What a column may hold: a value, or None where a conditional parameter is inactive."""
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Column = NDArray[Any]
"""[q]: bool, int64, float64 or object."""

EXACT = 2**53
"""Whole numbers up to here are exact as float64."""


def is_storable(text: str) -> bool:
    r"""Whether databases and files can hold a text: they hold neither NUL nor half a surrogate pair.

    >>> is_storable("naïve"), is_storable("\ud800")
    (True, False)
    """
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def plain(value: object, where: str) -> Cell:
    """``value`` as an ordinary Python scalar; NaN, infinities and containers are errors.

    >>> plain(np.int64(3), "nodes")
    3
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and not is_storable(value):
        raise InputError(f"{where} is {shown(value)}, which has a character that cannot be stored: remove it.")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise InputError(
                f"{where} is {shown(value)}, which does not fit in 64 bits: write it as a float or as text."
            )
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{where} is {value}, but a finite number is needed: replace or remove it.")
        return value
    raise InputError(f"{where} is {shown(value)}, but a text, a number or true/false is needed.")


def as_column(cells: Sequence[Cell]) -> Column:
    """Plain scalars as a column ``[q]``.

    >>> as_column([1, 2.5]), as_column(["a", None])
    (array([1. , 2.5]), array(['a', None], dtype=object))
    """
    kinds = {type(cell) for cell in cells}
    if kinds and kinds <= {bool}:
        return np.array(cells, dtype=np.bool_)
    if kinds and kinds <= {int}:
        return np.array(cells, dtype=np.int64)
    if kinds and kinds <= {int, float}:
        return np.array(cells, dtype=np.float64)
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def is_number(value: object) -> bool:
    """Whether ``value`` is an int or a float; True and False are not numbers here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def listed(values: Iterable[object], most: int = 8) -> str:
    """``values`` as a readable list that ends after ``most`` of them.

    >>> listed(range(20), most=3)
    '0, 1, 2, ... (20 in all)'
    """
    every = list(values)
    head = ", ".join(shown(value) for value in every[:most])
    return head if len(every) <= most else f"{head}, ... ({len(every)} in all)"
