"""The columns of a space as facts: each once, numbers where values have an order, names only where sizes do not tell the machines apart.

Users describe the same machines by their names, by their sizes, or by both, and copy columns from one table to the next. A kernel takes
every column for a fact of its own: a copy makes configurations look more different than they are, and in a name all values are equally
different.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lynceus.space.column import Column, FloatArray
from lynceus.space.derived import distinct
from lynceus.space.encode import LOG_SPAN, Kind

if TYPE_CHECKING:
    from lynceus.space.table import Space

_SIZES = {"nano": -4.0, "micro": -3.0, "small": -2.0, "medium": -1.0, "large": 0.0, "xlarge": 1.0}
_SIZES |= {"xs": -3.0, "s": -2.0, "m": -1.0, "l": 0.0, "xl": 1.0}
"""log2 of the size of a machine relative to "large": each word stands for twice the one before."""
_MULTIPLE = re.compile(r"(\d+)(?:xlarge|xl)")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-z%]*)")
_SEPARATOR = re.compile(r"[_\-\s]+|\.(?!\d+(?:[._\-\s]|$))")
"""Between the parts of a name; not the point of a number such as 2.4."""
_DIGITS = 9
"""Numbers that agree in so many digits of their column's range are equal: 3 × 0.1 is 0.3."""


@dataclass(frozen=True, eq=False, slots=True)
class Described:
    """A column as a model reads it."""

    values: FloatArray
    """`[q]`"""
    kind: Kind
    cells: Column | None = None
    """The user's own values of a categorical column `[q]`."""


def described(space: Space) -> list[Described]:
    """The columns that a model of sizes reads, in the order of the features; the price comes last.

    Left out are columns that hold the same fact as another one: copies, monotone functions of a number (also of the price), other codes
    of a category, and names that the columns beside them imply. Texts with an order become numbers; so do the parts of a name that have
    one, if nothing else tells its values apart. Where a number is missing, it is the mean of the others, and a further column says so.
    """
    columns = [one for place in range(len(space.feature_names)) for one in _read(space, place)]
    price = Described(np.log2(space.size_price), "log")
    columns = _without_redundant_names(_each_once(columns, price))
    parts = [part for one in columns for part in _parts(one)]
    if len(parts) > len(columns):
        columns = _without_redundant_names(_each_once(parts, price))
    # The price tells most machines apart, but not how they differ: it makes no name redundant.
    return [*columns, price] if np.ptp(price.values) > 0 else columns


def ordered_labels(labels: Sequence[object]) -> tuple[FloatArray, Kind] | None:
    """A number for each of some different texts, if they have an order: sizes of machines, or quantities of one unit.

    >>> ordered_labels(["large", "2xlarge", "xlarge"])
    (array([0., 2., 1.]), 'log')
    >>> ordered_labels(["16 GB", "8 GB"])
    (array([16.,  8.]), 'numeric')
    >>> ordered_labels(["c4", "m4"])
    """
    if len(labels) < 2 or not all(isinstance(label, str) for label in labels):
        return None
    words = [str(label).strip().lower() for label in labels]
    sizes = [_size(word) for word in words]
    quantities = [_QUANTITY.fullmatch(word) for word in words]
    if all(size is not None for size in sizes):
        numbers, kind = np.array(sizes, dtype=np.float64), "log"
    elif len({found and found[2] for found in quantities} - {None}) == 1 and all(quantities):
        numbers, kind = np.array([float(found[1]) for found in quantities if found]), "numeric"
        if numbers.min() > 0 and numbers.max() >= LOG_SPAN * numbers.min():
            numbers, kind = np.log2(numbers), "log"
    else:
        return None
    if len(np.unique(numbers)) < len(numbers):
        return None
    return numbers, ("log" if kind == "log" else "numeric")


def redundant_names(features: FloatArray, kinds: Sequence[str]) -> frozenset[int]:
    """Categorical columns that add no information: other columns of `features [q, d]` follow from them and identify their values.

    A machine type is such a name where its cores and memory are columns too. In a kernel all names are equally different, so a name
    hides how similar two machines are.

    >>> sorted(redundant_names(np.array([[0, 2, 4], [1, 4, 4], [2, 4, 8], [2, 4, 8.0]]), ["categorical", "log", "log"]))
    [0]
    """
    found: set[int] = set()
    for i, kind in enumerate(kinds):
        if kind != "categorical":
            continue
        _, first, value = np.unique(features[:, i], return_index=True, return_inverse=True)
        follows = (features == features[first][value]).all(axis=0)
        follows[[i, *found]] = False
        distinguished = np.unique(features[np.ix_(first, follows)], axis=0)
        if follows.any() and len(distinguished) == len(first):
            found.add(i)
    return frozenset(found)


def _read(space: Space, place: int) -> list[Described]:
    """A feature, with its texts in their order, or with its missing numbers filled in."""
    name, kind, values = space.feature_names[place], space.feature_kinds[place], space.features[:, place]
    varied = any(parameter.name == name for parameter in space.parameters)
    cells, codes = distinct(space.columns[name])
    missing = np.array([cell is None for cell in cells])[codes]
    if kind == "categorical":
        order = None if missing.any() else ordered_labels(cells)
        if order is not None:
            return [Described(order[0][codes], order[1])]
        return [Described(values, kind, space.columns[name])]
    if missing.any() and not varied:
        filled = np.where(missing, values[~missing].mean(), values)
        return [Described(filled, kind), Described(missing.astype(np.float64), "categorical")]
    return [Described(values, kind)]


def _parts(one: Described) -> list[Described]:
    """A name such as c4.2xlarge or n1-standard-8 as its sizes and the rest; a column whose values have no such parts as it is."""
    if one.cells is None:
        return [one]
    labels, codes = distinct(one.cells)
    split = [tuple(part for part in _SEPARATOR.split(str(label)) if part) for label in labels]
    count = len(split[0])
    if count < 2 or any(len(parts) != count for parts in split) or not all(isinstance(each, str) for each in labels):
        return [one]
    found: list[Described] = []
    rest: list[tuple[str, ...]] = []
    for position in zip(*split, strict=True):
        words = list(dict.fromkeys(position))
        order = ordered_labels(words)
        if order is None:
            rest.append(position)
        else:
            number = dict(zip(words, order[0].tolist(), strict=True))
            found.append(Described(np.array([number[word] for word in position])[codes], order[1]))
    if not found:
        return [one]
    family = list(zip(*rest, strict=True))
    code = {words: float(place) for place, words in enumerate(dict.fromkeys(family))}
    if len(code) > 1:
        found.insert(0, Described(np.array([code[words] for words in family])[codes], "categorical"))
    return found


def _each_once(columns: Sequence[Described], price: Described) -> list[Described]:
    """Without constant columns, and those that hold the same fact as the price or an earlier column."""
    seen = {_fact(price)}
    kept: list[Described] = []
    for one in columns:
        fact = _fact(one)
        if np.ptp(one.values) > 0 and fact not in seen:
            seen.add(fact)
            kept.append(one)
    return kept


def _fact(one: Described) -> tuple[bool, bytes]:
    """Equal for columns that hold the same fact: categories up to their codes, numbers up to a monotone function."""
    if one.kind == "categorical":
        _, first, codes = np.unique(one.values, return_index=True, return_inverse=True)
        return True, np.argsort(np.argsort(first))[codes].astype(np.int64).tobytes()
    span = float(np.ptp(one.values)) or 1.0
    _, ranks = np.unique(np.round((one.values - one.values.min()) / span, _DIGITS), return_inverse=True)
    falling = ranks.max() - ranks
    return False, min(ranks.astype(np.int64).tobytes(), falling.astype(np.int64).tobytes())


def _without_redundant_names(columns: Sequence[Described]) -> list[Described]:
    found = redundant_names(*stacked(columns)) if columns else ()
    return [one for place, one in enumerate(columns) if place not in found]


def stacked(columns: Sequence[Described]) -> tuple[FloatArray, tuple[Kind, ...]]:
    """The columns side by side `[q, d]`, at least one, and the kind of each."""
    return np.column_stack([one.values for one in columns]), tuple(one.kind for one in columns)


def _size(word: str) -> float | None:
    """log2 of a size of a machine, relative to "large"; None for another word."""
    multiple = _MULTIPLE.fullmatch(word)
    if multiple and int(multiple[1]) > 0:
        return 1.0 + math.log2(int(multiple[1]))
    return _SIZES.get(word)
