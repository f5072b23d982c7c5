"""What models are trained on: the columns of a space that describe a configuration, and the time of a run in the model's unit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.models.state import Form, State
from lynceus.space.column import FloatArray

if TYPE_CHECKING:
    from lynceus.space.table import Space

Inputs = Literal["features", "parameters", "sizes and price"]
"""All features of the space (machine sizes, derived columns); the parameters' own values and codes alone; or all features but
names that the other features imply, and the logarithm of the price, which is known for every configuration and
grows with the size of its machines."""

_SHORTEST_S = 1e-3
"""Shorter times count as this long, so that their logarithm exists."""


@lru_cache(maxsize=32)
def model_inputs(space: Space, inputs: Inputs) -> tuple[FloatArray, tuple[str, ...]]:
    """The features that a model reads `[q, d]` and the kind of each; cached, because every decision needs them."""
    features, kinds = space.features, space.feature_kinds
    if inputs == "parameters":
        names = {parameter.name for parameter in space.parameters}
        chosen = [i for i, name in enumerate(space.feature_names) if name in names]
        features, kinds = features[:, chosen], tuple(kinds[i] for i in chosen)
    elif inputs == "sizes and price":
        kept = [i for i in range(len(kinds)) if i not in redundant_names(features, kinds)]
        features, kinds = features[:, kept], tuple(kinds[i] for i in kept)
        price = np.log2(space.size_price)
        if np.ptp(price) > 0:
            features, kinds = np.column_stack([features, price]), (*kinds, "log")
    if features.shape[1] == 0:
        # A space without varying columns: one constant column keeps every model's arithmetic valid.
        features, kinds = np.zeros((len(space), 1)), ("numeric",)
    return features, kinds


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


@lru_cache(maxsize=32)
def log_price(space: Space) -> FloatArray:
    """ln price of every configuration, centred `[q]`."""
    logs = np.log(space.size_price)
    return np.asarray(logs - logs.mean())


def target_values(state: State, form: Form, seconds: FloatArray) -> FloatArray:
    """Times `[n]` of the state's observations in a model's unit: dollars, or ln seconds."""
    if form == "cost":
        return state.problem.run_costs.of(seconds, state.rows)
    return np.log(np.maximum(seconds, _SHORTEST_S))
