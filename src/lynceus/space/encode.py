"""Encoding: columns as numeric features for models, once per space.

- Categories become codes in the order of their values; booleans 0 and 1. Both have the kind "categorical".
- Ordinal texts become their position, numbers stay numbers ("numeric").
- Numbers on a log scale become log2 ("log"): the feature is already transformed. An Integer or Float parameter asks for
  it by ``log=True``. Ordinal numbers and derived numbers, which state no scale, are taken as logarithms when they are
  positive and the largest is at least 8 times the smallest: machine sizes come as powers of two, and three doublings
  on a linear scale would crowd all but the largest into a corner. Trees are nearly indifferent to this (it moves only
  where between two values they cut); Gaussian processes are not.
- Inactive values of a conditional parameter, and unknown values of a feature, are one step below the smallest value: a
  tree separates them with one split, a Gaussian process sees them near the smallest setting, and no further feature is
  needed.
- Constant features are left out: they have no information.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import BoolArray, Cell, Column, FloatArray, is_number, listed
from lynceus.space.derived import distinct
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal, Parameter

Kind = Literal["numeric", "log", "categorical"]
LOG_SPAN = 8.0
"""A positive number of unstated scale is a logarithm when its largest value is this many times its smallest."""


def encode(
    columns: Mapping[str, Column], parameters: Sequence[Parameter], features: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...], tuple[Kind, ...]]:
    """The features ``[q, d]``, their names and kinds; ``features`` names the columns, constant ones are dropped."""
    by_name = {parameter.name: parameter for parameter in parameters}
    size = len(next(iter(columns.values())))
    kept: list[tuple[FloatArray, str, Kind]] = []
    for name in dict.fromkeys(features):
        if name not in columns:
            hint = did_you_mean(name, columns) or f" Known are {listed(columns)}."
            raise InputError(f"The feature {shown(name)} is not a column.{hint}")
        cells, codes = distinct(columns[name])
        if len(cells) < 2:
            continue
        numbers, kind = _numbers(cells, by_name.get(name))
        kept.append((numbers[codes], name, kind))
    matrix = np.stack([feature for feature, _, _ in kept], axis=1) if kept else np.empty((size, 0))
    return matrix, tuple(name for _, name, _ in kept), tuple(kind for _, _, kind in kept)


def _numbers(cells: Sequence[Cell], parameter: Parameter | None) -> tuple[FloatArray, Kind]:
    """A number for each different value of a column, and what kind of number it is."""
    inactive = np.array([cell is None for cell in cells])
    active = [cell for cell in cells if cell is not None]
    if active and all(isinstance(cell, bool) for cell in active):
        return _with_inactive([float(cell) for cell in active if cell is not None], inactive), "categorical"
    if isinstance(parameter, Categorical) or not all(is_number(cell) for cell in active):
        order = parameter.values if parameter else sorted(active, key=lambda cell: (type(cell).__name__, str(cell)))
        place = {value: float(code) for code, value in enumerate(order)}
        kind: Kind = "numeric" if isinstance(parameter, Ordinal) else "categorical"
        return _with_inactive([place[cell] for cell in active if cell is not None], inactive), kind
    numbers = np.array(active, dtype=np.float64)
    if _on_log_scale(numbers, parameter):
        return _with_inactive(np.log2(numbers).tolist(), inactive), "log"
    return _with_inactive(numbers.tolist(), inactive), "numeric"


def _on_log_scale(numbers: FloatArray, parameter: Parameter | None) -> bool:
    if isinstance(parameter, Integer | Float):
        return parameter.log
    return bool(numbers.min() > 0 and numbers.max() >= LOG_SPAN * numbers.min())


def _with_inactive(encoded: Sequence[float], inactive: BoolArray) -> FloatArray:
    numbers = np.empty(len(inactive))
    numbers[~inactive] = encoded
    if inactive.any():
        steps = np.unique(encoded)
        step = steps[1] - steps[0] if len(steps) > 1 else 1.0
        numbers[inactive] = steps[0] - step
    return numbers
