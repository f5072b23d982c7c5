"""The compiled implementation: arrays are checked and allocated here, the rest is C (see forest.c)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _forest
from .acquisition import FORMS, Acquisition, Picked
from .values import Codes, Floats, Growth, Imagined, Observed, check_together, no_imagined


def predict(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """See `lynceus.models._kernel.predict`."""
    imagined = imagined or no_imagined(observed)
    mean, std = np.empty((2, imagined.b, codes.q, len(observed.target)))
    _forest.predict(*_problem(codes, observed, imagined, growth), (mean, std), threads)
    return mean, std


def pick(
    codes: Codes,
    observed: Observed,
    imagined: Imagined | None,
    growth: Growth,
    acquisition: Acquisition,
    threads: int = 1,
) -> Picked:
    """See `lynceus.models._kernel.pick`."""
    imagined = imagined or no_imagined(observed)
    b, m = imagined.b, len(observed.target)
    acquisition.check(codes, b, m)
    picked = Picked(np.empty(b, dtype=np.int64), np.empty(b), np.empty((b, m)), np.empty((b, m)))
    outputs = (picked.row, picked.value, picked.mean, picked.std)
    _forest.pick(*_problem(codes, observed, imagined, growth), *_acquisition(acquisition), outputs, threads)
    return picked


_Call = tuple[tuple[int, ...], tuple[NDArray[Any], ...], tuple[float, ...]]


def _problem(codes: Codes, observed: Observed, imagined: Imagined, growth: Growth) -> _Call:
    """Sizes, arrays and growth in the order of module.c."""
    check_together(codes, observed, imagined)
    m, trees, n = observed.bags.shape
    sizes = (codes.q, codes.d, codes.below.shape[1], len(codes.values), len(codes.below), n, imagined.e, m, trees)
    arrays = (codes.codes, codes.values, codes.starts, codes.below)
    real = (observed.rows, observed.target, observed.bags, observed.seeds)
    rules = (growth.attributes, growth.min_leaf, int(growth.splits == "random"), int(growth.spread == "total"))
    return (
        (*sizes, imagined.b),
        (*arrays, *real, imagined.rows, imagined.target, imagined.bags),
        (*rules, growth.min_gain, growth.min_variance),
    )


def _acquisition(acquisition: Acquisition) -> tuple[tuple[float, ...], tuple[NDArray[Any] | None, ...]]:
    """Numbers and arrays of the acquisition function in the order of module.c."""
    constraints, billing = acquisition.constraints, acquisition.billing
    numbers = (FORMS.index(acquisition.form), len(constraints.metric), acquisition.confidence_z)
    prices = (billing.price, billing.boot, billing.minimum) if billing else (None, None, None)
    bound = constraints.bound if len(constraints.metric) else None
    states = (acquisition.open, acquisition.best, acquisition.worst, acquisition.left, acquisition.ceiling)
    return numbers, (*states, *prices, constraints.metric, constraints.sign, bound)
