"""Configurations as points for the model of input sizes, and how they move with the data: what counts is the data that each machine has.

κ times the data on n machines leave each machine what it had on n/κ machines: memory that did not suffice there does not suffice here.
So the number of machines, and every total that grows with it, may be read relative to the data. Without a column of machines it is
memory that is read so.

Shapes: q configurations, d coordinates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.described import redundant_names

if TYPE_CHECKING:
    from lynceus.space.column import FloatArray
    from lynceus.space.table import Space

_NODES = re.compile(
    r"^(num_?)?(nodes?|workers?|machines?|instances?|executors?|replicas?|hosts?|servers?)$", re.IGNORECASE
)
_MEMORY = re.compile(r"(^|_)(memory|mem|ram)(_|$)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Standardised coordinates of every configuration."""

    points: FloatArray
    """`[q, d]`: logarithms of positive numbers, one column for each value of a name."""
    shift: FloatArray
    """How far a configuration moves for each unit of ln data, if data per machine counts `[d]`; 0 where it does not."""
    price_moves: bool
    """Whether the price follows the number of machines, and moves with it."""


@lru_cache(maxsize=32)
def coordinates(space: Space) -> Coordinates:
    """The coordinates of a space; cached, because every prediction needs them."""
    logs = {place: _log(space, place) for place, kind in enumerate(space.feature_kinds) if kind != "categorical"}
    moving = _moving(space, logs)
    needless = redundant_names(space.features, space.feature_kinds)
    columns: list[FloatArray] = []
    shifts: list[float] = []
    for place, kind in enumerate(space.feature_kinds):
        if place in needless or np.ptp(space.features[:, place]) == 0:
            continue
        if kind == "categorical":
            codes = space.features[:, place]
            columns += [(codes == code).astype(float) for code in np.unique(codes)]
            shifts += [0.0] * len(np.unique(codes))
        else:
            scale = max(float(logs[place].std()), 1e-12)
            columns.append((logs[place] - logs[place].mean()) / scale)
            shifts.append(-1.0 / scale if place in moving else 0.0)
    price_moves = any(_NODES.match(space.feature_names[place]) for place in moving)
    price = np.log(space.size_price)
    if (scale := float(price.std())) > 0:
        columns.append((price - price.mean()) / scale)
        shifts.append(-1.0 / scale if price_moves else 0.0)
    points = np.column_stack(columns) if columns else np.zeros((len(space), 1))
    return Coordinates(points, np.array(shifts) if shifts else np.zeros(1), price_moves)


def _log(space: Space, place: int) -> FloatArray:
    """A number of every configuration by its natural logarithm where it has one; positions of ordered names stay positions `[q]`."""
    values, kind = space.features[:, place], space.feature_kinds[place]
    if kind == "log":
        return np.asarray(values * np.log(2.0))
    numbers = all(isinstance(cell, int | float) for cell in space.columns[space.feature_names[place]].tolist())
    return np.log(values) if numbers and (values > 0).all() else np.asarray(values, dtype=float)


def _moving(space: Space, logs: dict[int, FloatArray]) -> set[int]:
    """Places of the features that are read relative to the data: machines and their totals, or else memory."""
    nodes = next((place for place in logs if _NODES.match(space.feature_names[place])), None)
    if nodes is None or np.ptp(logs[nodes]) == 0:
        return {place for place in logs if _MEMORY.search(space.feature_names[place])}
    others = [i for i, one in enumerate(space.parameters) if one.name != space.feature_names[nodes]]
    groups = (
        np.unique(space.codes[:, others], axis=0, return_inverse=True)[1].reshape(-1)
        if others
        else np.zeros(len(space), int)
    )
    # A total is so much per machine: its logarithm minus that of the machines is the same for each kind of machine.
    return {
        place for place, values in logs.items()
        if place == nodes or (np.ptp(values) > 0 and all(np.ptp((values - logs[nodes])[groups == one]) < 1e-3 for one in np.unique(groups)))
    }  # fmt: skip
