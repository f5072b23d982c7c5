"""The values that enter the kernel, checked when they are built; both implementations trust them afterwards.

Letters: b imagined states, q candidate rows, d features, n real observations, e imagined ones, m metrics, L constraints.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BIT_SET_BYTES = 1 << 25
"""Bit sets of a table are kept up to this size; beyond it the kernel compares codes instead."""


@dataclass(frozen=True, eq=False, slots=True)
class Codes:
    """A table of candidates as the trees see it: only the order of a feature's values matters. Made by `encode`."""

    codes: NDArray[np.int32]
    """[d,q] rank of each candidate's value among the distinct values of the feature."""
    values: Floats
    """Distinct values, ascending, feature after feature."""
    starts: Ints
    """[d+1] where the values of each feature begin in `values`."""
    below: NDArray[np.uint64]
    """[len(values), words] bit sets: the candidates whose code is less than this one's; empty if too large to keep."""

    @property
    def q(self) -> int:
        """Number of candidate rows."""
        return int(self.codes.shape[1])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.codes.shape[0])


def encode(features: ArrayLike) -> Codes:
    """Rank the features [q,d] of a candidate table; do it once per table and keep the result.

    >>> encode([[10.0, 1.0], [30.0, 1.0], [20.0, 1.0]]).codes.tolist()
    [[0, 2, 1], [0, 0, 0]]
    """
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"features has shape {table.shape}; expected [q,d] with at least one row and one column.")
    if not np.isfinite(table).all():
        raise ValueError("features holds NaN or infinite values; expected finite numbers, encode absent values first.")
    q, d = table.shape
    ranked = [np.unique(table[:, f], return_inverse=True) for f in range(d)]
    starts = np.concatenate([[0], np.cumsum([len(distinct) for distinct, _ in ranked])]).astype(np.int64)
    codes = np.ascontiguousarray([rank.reshape(q) for _, rank in ranked], dtype=np.int32)
    values = np.concatenate([distinct for distinct, _ in ranked])
    return Codes(codes, values, starts, _bit_sets(codes, starts))


def _bit_sets(codes: NDArray[np.int32], starts: Ints) -> NDArray[np.uint64]:
    """For every code of every feature, the set of candidates below it, 64 candidates to a word."""
    words = -(-codes.shape[1] // 64)
    if int(starts[-1]) * words * 8 > BIT_SET_BYTES:
        return np.zeros((0, words), dtype=np.uint64)
    sets = np.zeros((int(starts[-1]), words * 8), dtype=np.uint8)
    for f, column in enumerate(codes):
        below = column[None, :] < np.arange(starts[f + 1] - starts[f])[:, None]
        packed = np.packbits(below, axis=1, bitorder="little")
        sets[starts[f] : starts[f + 1], : packed.shape[1]] = packed
    return np.ascontiguousarray(sets.view("<u8").astype(np.uint64))


@dataclass(frozen=True, slots=True)
class Growth:
    """How a tree is grown and how the trees are summed up."""

    attributes: int
    """Attributes tried per node; more are tried as long as none gives a gain (the rule of Weka's RandomTree)."""
    min_gain: float = 0.0
    """A split must reduce the node's sum of squared deviations by more than this (squared units of the target)."""
    min_variance: float = 0.0
    """A node whose variance is below this fraction of its bag's variance is a leaf; 0 switches the rule off."""
    min_leaf: int = 1
    """Smallest bag weight of a child."""
    splits: Literal["best", "random"] = "best"
    """"best" midpoint, or one "random" threshold per tried attribute (extra-trees)."""
    spread: Literal["between", "total"] = "between"
    """"between": sample deviation of the trees' means; "total": with the variance inside the leaves added."""

    def __post_init__(self) -> None:
        if self.attributes < 1 or self.min_leaf < 1:
            raise ValueError(f"attributes {self.attributes} and min_leaf {self.min_leaf} must be at least 1.")
        if not (0 <= self.min_gain < np.inf and 0 <= self.min_variance < np.inf):
            raise ValueError(f"min_gain {self.min_gain} and min_variance {self.min_variance} must be 0 or more.")
        if self.splits not in ("best", "random") or self.spread not in ("between", "total"):
            raise ValueError(f"splits {self.splits!r}, spread {self.spread!r}: best or random, between or total.")


@dataclass(frozen=True, eq=False, slots=True)
class Observed:
    """The real observations, shared by all states. One separate ensemble per metric."""

    rows: Ints
    """[n] candidate row of each observation; a row may occur more than once."""
    target: Floats
    """[m,n] training targets of each metric's model."""
    bags: NDArray[np.int32]
    """[m,trees,n] how often each observation is in each tree's bag."""
    seeds: NDArray[np.uint64]
    """[m,trees] seed of each tree: its only randomness besides the bag."""

    def __post_init__(self) -> None:
        _set(self, rows=np.int64, target=np.float64, bags=np.int32, seeds=np.uint64)
        _shape("rows", self.rows, (None,))
        m, n = _shape("target", self.target, (None, len(self.rows)))
        _, trees, _ = _shape("bags", self.bags, (m, None, n))
        _shape("seeds", self.seeds, (m, trees))
        if min(m, n, trees) == 0:
            raise ValueError(f"{n} observations of {m} metrics in {trees} trees; expected at least one of each.")
        _finite("target", self.target)
        _weights("bags", self.bags)


@dataclass(frozen=True, eq=False, slots=True)
class Imagined:
    """b states that add e imagined observations each; put siblings, which share the first e-1, side by side."""

    rows: Ints
    """[b,e] candidate rows."""
    target: Floats
    """[b,e,m] imagined values."""
    bags: NDArray[np.int32]
    """[m,trees,e] bag weights, the same for all states: a tree that leaves the new point out does not change."""

    def __post_init__(self) -> None:
        _set(self, rows=np.int64, target=np.float64, bags=np.int32)
        b, e = _shape("imagined rows", self.rows, (None, None))
        _, _, m = _shape("imagined target", self.target, (b, e, None))
        _shape("imagined bags", self.bags, (m, None, e))
        _finite("imagined target", self.target)
        _weights("imagined bags", self.bags)

    @property
    def b(self) -> int:
        """Number of states."""
        return int(self.rows.shape[0])

    @property
    def e(self) -> int:
        """Imagined observations in each."""
        return int(self.rows.shape[1])


def no_imagined(observed: Observed, states: int = 1) -> Imagined:
    """States that hold the real observations only."""
    m, trees, _ = observed.bags.shape
    empty = np.zeros((states, 0), dtype=np.int64)
    return Imagined(empty, np.zeros((states, 0, m)), np.zeros((m, trees, 0), dtype=np.int32))


def check_together(codes: Codes, observed: Observed, imagined: Imagined) -> None:
    """Raise an error for parts that do not fit each other."""
    m, trees, _ = observed.bags.shape
    if imagined.bags.shape[:2] != (m, trees) or imagined.target.shape[2] != m:
        given = (*imagined.bags.shape[:2], imagined.target.shape[2])
        raise ValueError(
            f"imagined observations are for (m, trees, m) = {given}; the real ones have m={m}, {trees} trees."
        )
    for name, rows in (("rows", observed.rows), ("imagined rows", imagined.rows)):
        if rows.size and (rows.min() < 0 or rows.max() >= codes.q):
            raise ValueError(f"{name} go from {rows.min()} to {rows.max()}; the table has rows 0 to {codes.q - 1}.")


def _set(value: object, **dtypes: Any) -> None:
    """Turn the fields of a frozen value into contiguous arrays of the kernel's types, without lossy casts."""
    for name, dtype in dtypes.items():
        raw = np.asarray(getattr(value, name))
        same_kind = raw.dtype.kind in {"f": "fiu", "i": "iu", "u": "iu"}[np.dtype(dtype).kind] or raw.size == 0
        if not same_kind:
            raise ValueError(f"{name} has type {raw.dtype}; expected {np.dtype(dtype)}.")
        object.__setattr__(value, name, np.ascontiguousarray(raw, dtype=dtype))


def _shape(name: str, array: NDArray[Any], expected: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape, after comparing it with the expected one (None: any length)."""
    fits = array.ndim == len(expected) and all(
        want in (None, got) for got, want in zip(array.shape, expected, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in expected)
        raise ValueError(f"{name} has shape {array.shape}; expected ({wanted}).")
    return array.shape


def _finite(name: str, array: Floats) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; the model needs finite numbers.")


def _weights(name: str, bags: NDArray[np.int32]) -> None:
    if bags.size and (bags.min() < 0 or bags.max() > 10_000):
        raise ValueError(f"{name} hold weights from {bags.min()} to {bags.max()}; expected counts between 0 and 10000.")
