"""The distribution of a formula over quantities that a model predicts.

A product of powers of log-normal quantities is log-normal, and a multiple of a normal one is normal: both exactly. Any other formula
gets the distribution with its first two moments, by Gauss-Hermite quadrature: of its logarithm where it is positive at every node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.distribution import LogNormal, Normal

if TYPE_CHECKING:
    from lynceus.problem.formula import Formula, Monomial
    from lynceus.space.column import FloatArray, IntArray

_POINTS = {1: 15, 2: 7, 3: 5}
"""Nodes for each of so many quantities."""
_FEWEST_POINTS = 3
_LEAST_MEAN = 0.05
"""A normal quantity in a product counts with a mean of at least so many standard deviations: a product needs its logarithm."""


def known_value(factor: FloatArray, shape: tuple[int, ...]) -> Normal:
    """What is known before a run."""
    return Normal(np.broadcast_to(factor, shape), np.zeros(shape))


def product_distribution(
    monomial: Monomial, quantities: Mapping[str, Normal | LogNormal], rows: IntArray | None
) -> Normal | LogNormal:
    """factor · Π quantity^exponent with independent quantities `[b, q]`."""
    factor = monomial.factor if rows is None or len(monomial.factor) == 1 else monomial.factor[rows]
    if len(monomial.exponents) == 1:
        ((name, power),) = monomial.exponents.items()
        alone = quantities[name]
        if power == 1.0 and isinstance(alone, Normal):
            return Normal(factor * alone.mean, factor * alone.std)
    mean, variance = np.log(factor), np.zeros(1)
    for name, power in monomial.exponents.items():
        each = as_log_normal(quantities[name])
        mean, variance = mean + power * np.asarray(each.mean), variance + np.square(power * np.asarray(each.std))
    return LogNormal(mean, np.sqrt(variance))


def as_log_normal(quantity: Normal | LogNormal) -> LogNormal:
    """The log-normal distribution with the same mean and standard deviation."""
    if isinstance(quantity, LogNormal):
        return quantity
    std = np.asarray(quantity.std)
    mean = np.maximum(quantity.mean, np.maximum(_LEAST_MEAN * std, np.finfo(float).tiny))
    variance = np.log1p(np.square(std / mean))
    return LogNormal(np.log(mean) - 0.5 * variance, np.sqrt(variance))


def spread(quantity: Normal | LogNormal) -> FloatArray:
    """Standard deviation in the quantity's own unit."""
    if isinstance(quantity, Normal):
        return np.asarray(quantity.std)
    return np.asarray(quantity.expectation() * np.sqrt(np.expm1(np.square(quantity.std))))


def matched_distribution(
    formula: Formula,
    quantities: Mapping[str, Normal | LogNormal],
    rows: IntArray | None,
    cost_of: Callable[[FloatArray], FloatArray],
) -> Normal | LogNormal:
    """The distribution with the moments of a formula over independent quantities; `cost_of` turns seconds into dollars."""
    drawn = {("time" if name == "cost" else name): None for name in formula.quantities}
    nodes = {name: quantities[name].nodes(_POINTS.get(len(drawn), _FEWEST_POINTS)) for name in drawn}
    values, shares = [], []
    for places in product(*(range(len(weights)) for _, weights in nodes.values())):
        given = {name: nodes[name][0][..., place] for name, place in zip(nodes, places, strict=True)}
        if "cost" in formula.quantities:
            given["cost"] = cost_of(given["time"])
        values.append(formula.values(given, rows))
        shares.append(float(np.prod([nodes[name][1][place] for name, place in zip(nodes, places, strict=True)])))
    return _of_moments(values, shares)


def _of_moments(values: list[FloatArray], shares: list[float]) -> Normal | LogNormal:
    """Weighted moments over nodes, one array each; nodes at which the formula has no value are left out."""
    positive = all(bool((each[np.isfinite(each)] > 0).all()) for each in values)
    total = first = second = np.zeros(1)
    with np.errstate(all="ignore"):
        for value, share in zip(values, shares, strict=True):
            each = np.log(value) if positive else value
            weight = np.where(np.isfinite(each), share, 0.0)
            each = np.where(np.isfinite(each), each, 0.0)
            total, first, second = total + weight, first + weight * each, second + weight * np.square(each)
        mean = np.where(total > 0, first / total, 0.0)
        std = np.sqrt(np.maximum(np.where(total > 0, second / total, 1.0) - np.square(mean), 0.0))
    return LogNormal(mean, std) if positive else Normal(mean, std)
