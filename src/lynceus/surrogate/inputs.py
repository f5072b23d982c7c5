"""What models read: the columns of a space that describe a configuration, and what was told of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.situation import FloatArray, Form, Situation

if TYPE_CHECKING:
    from lynceus.space import Space

Inputs = Literal["features", "parameters", "sizes and price"]
"""All features of the space (machine sizes, derived columns); the parameters' own values and codes alone; or all features but
names that the others spell out, and the logarithm of the price, the one number that is known of every configuration and that
grows with the size of its machines."""

_SHORTEST_S = 1e-3
"""A run that took no time at all still needs a logarithm."""


@lru_cache(maxsize=32)
def model_inputs(space: Space, inputs: Inputs) -> tuple[FloatArray, tuple[str, ...]]:
    """The features that a model reads `[q, d]` and the kind of each; a pure function of the space, asked for at every decision."""
    features, kinds = space.features, space.feature_kinds
    if inputs == "parameters":
        names = {parameter.name for parameter in space.parameters}
        chosen = [i for i, name in enumerate(space.feature_names) if name in names]
        features, kinds = features[:, chosen], tuple(kinds[i] for i in chosen)
    elif inputs == "sizes and price":
        kept = [i for i in range(len(kinds)) if i not in spelled_out(features, kinds)]
        features, kinds = features[:, kept], tuple(kinds[i] for i in kept)
        price = np.log2(space.size_price)
        if np.ptp(price) > 0:
            features, kinds = np.column_stack([features, price]), (*kinds, "log")
    if features.shape[1] == 0:
        # A space in which nothing varies: one constant column keeps every model's arithmetic valid.
        features, kinds = np.zeros((len(space), 1)), ("numeric",)
    return features, kinds


def spelled_out(features: FloatArray, kinds: Sequence[str]) -> frozenset[int]:
    """Categories that say nothing new: other columns of `features [q, d]` follow from them and together tell their values apart.

    A machine type is such a name where its cores and memory are columns too. To a kernel all names are equally unlike, so a name
    hides how alike two machines are.

    >>> sorted(spelled_out(np.array([[0, 2, 4], [1, 4, 4], [2, 4, 8], [2, 4, 8.0]]), ["categorical", "log", "log"]))
    [0]
    """
    found: set[int] = set()
    for i, kind in enumerate(kinds):
        if kind != "categorical":
            continue
        _, first, value = np.unique(features[:, i], return_index=True, return_inverse=True)
        follows = (features == features[first][value]).all(axis=0)
        follows[[i, *found]] = False
        told_apart = np.unique(features[np.ix_(first, follows)], axis=0)
        if follows.any() and len(told_apart) == len(first):
            found.add(i)
    return frozenset(found)


@lru_cache(maxsize=32)
def log_price(space: Space) -> FloatArray:
    """ln price of every configuration, centred `[q]`."""
    logs = np.log(space.size_price)
    return np.asarray(logs - logs.mean())


def told_run(situation: Situation, form: Form, seconds: FloatArray) -> FloatArray:
    """Times `[n]` of the situation's observations in a model's unit: dollars, or ln seconds."""
    if form == "cost":
        return situation.problem.costs(seconds, situation.rows)
    return np.log(np.maximum(seconds, _SHORTEST_S))
