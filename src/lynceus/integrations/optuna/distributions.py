"""Optuna's distributions and our parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from lynceus.errors import InputError
from lynceus.integrations.candidate_table import Dimension
from lynceus.space.parameter import Categorical, Integer, Ordinal, Parameter
from lynceus.space.table import Space


def dimension(name: str, distribution: BaseDistribution, steps: int) -> Dimension:
    """A distribution as a list of values; a continuous one becomes a grid of `steps` values."""
    if isinstance(distribution, CategoricalDistribution):
        return Dimension(name, "categorical", tuple(distribution.choices))
    if isinstance(distribution, IntDistribution):
        step = distribution.step
        return Dimension.of_range(
            name, distribution.low, distribution.high, kind="integer", step=step, log=distribution.log
        )
    if isinstance(distribution, FloatDistribution):
        return Dimension.of_range(
            name,
            distribution.low,
            distribution.high,
            kind="float",
            step=distribution.step,
            log=distribution.log,
            steps=steps,
        )
    raise InputError(f"Parameter {name!r} has a {type(distribution).__name__}, which Lynceus does not know.")


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """The distribution that suggests exactly the values of a parameter.

    >>> distribution_of(Integer("nodes", 2, 10, step=4))
    IntDistribution(high=10, log=False, low=2, step=4)
    >>> distribution_of(Integer("cores", values=[4, 6, 12]))
    CategoricalDistribution(choices=(4, 6, 12))
    """
    if isinstance(parameter, Categorical | Ordinal):
        return CategoricalDistribution(parameter.values)
    gaps = np.diff(np.array(parameter.values, dtype=float))
    if parameter.log or len(gaps) == 0 or not np.allclose(gaps, gaps[0], rtol=1e-9) or gaps[0] <= 0:
        return CategoricalDistribution(parameter.values)
    if isinstance(parameter, Integer):
        return IntDistribution(parameter.values[0], parameter.values[-1], step=int(gaps[0]))
    low, high = parameter.values[0], parameter.values[-1]
    even = FloatDistribution(low, high, step=float(f"{float(gaps[0]):.12g}"))
    fits = even.high == high and all(even._contains(value) for value in parameter.values)
    return even if fits else CategoricalDistribution(parameter.values)


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """A distribution for every parameter of a space."""
    return {one.name: distribution_of(one) for one in space.parameters}


def of_internal(distributions: Mapping[str, BaseDistribution], numbers: Mapping[str, float]) -> dict[str, object]:
    """A configuration from Optuna's internal numbers; parameters without a distribution are left out."""
    return {name: distributions[name].to_external_repr(one) for name, one in numbers.items() if name in distributions}


def to_internal(distributions: Mapping[str, BaseDistribution], point: Mapping[str, object]) -> dict[str, float]:
    """A configuration in Optuna's internal numbers."""
    return {name: float(distributions[name].to_internal_repr(one)) for name, one in point.items()}
