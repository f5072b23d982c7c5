"""What models are trained on: the columns of a space that describe a configuration, and the time of a run in the model's unit."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.models.described import described, redundant_names, stacked
from lynceus.models.state import Form, State
from lynceus.space.column import FloatArray

if TYPE_CHECKING:
    from lynceus.space.table import Space

Inputs = Literal["features", "parameters", "sizes and price", "facts and price"]
"""All features of the space (machine sizes, derived columns); the parameters' own values and codes alone; all features but names that the
other features imply, and the logarithm of the price, which is known for every configuration and grows with the size of its machines; or
every fact that the features hold once (`lynceus.models.described`), and the price."""

_SHORTEST_S = 1e-3
"""Shorter times count as this long, so that their logarithm exists."""


@lru_cache(maxsize=32)
def model_inputs(space: Space, inputs: Inputs) -> tuple[FloatArray, tuple[str, ...]]:
    """The features that a model reads `[q, d]` and the kind of each; cached, because every decision needs them."""
    features, kinds = space.features, tuple(map(str, space.feature_kinds))
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
    elif inputs == "facts and price":
        columns = described(space)
        features, kinds = stacked(columns) if columns else (features[:, :0], ())
    if features.shape[1] == 0:
        # A space without varying columns: one constant column keeps every model's arithmetic valid.
        features, kinds = np.zeros((len(space), 1)), ("numeric",)
    return features, kinds


@lru_cache(maxsize=32)
def standard_inputs(space: Space) -> FloatArray:
    """Standardised features `[q, d]`; a name becomes one column for each of its values."""
    features, kinds = model_inputs(space, "sizes and price")
    columns = []
    for place, kind in enumerate(kinds):
        feature = features[:, place]
        if kind == "categorical":
            values = np.unique(feature)
            columns += [(feature == value).astype(float) for value in values]
        else:
            columns.append((feature - feature.mean()) / max(float(feature.std()), 1e-12))
    return np.column_stack(columns)


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
