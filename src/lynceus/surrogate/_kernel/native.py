"""The compiled implementation: arrays are checked and allocated here, the rest is C (forest.c tells how)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _forest
from .gain import FORMS, Gain, Picked
from .values import Codes, Floats, Growth, Imagined, Observed, check_together, nothing_imagined


def believe(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """See `lynceus.surrogate._kernel.believe`."""
    imagined = imagined or nothing_imagined(observed)
    mean, std = np.empty((2, imagined.b, codes.q, len(observed.told)))
    _forest.believe(*_problem(codes, observed, imagined, growth), (mean, std), threads)
    return mean, std


def pick(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, gain: Gain, threads: int = 1
) -> Picked:
    """See `lynceus.surrogate._kernel.pick`."""
    imagined = imagined or nothing_imagined(observed)
    b, m = imagined.b, len(observed.told)
    gain.check(codes, b, m)
    answer = Picked(np.empty(b, dtype=np.int64), np.empty(b), np.empty((b, m)), np.empty((b, m)))
    outputs = (answer.row, answer.gain, answer.mean, answer.std)
    _forest.pick(*_problem(codes, observed, imagined, growth), *_gain(gain), outputs, threads)
    return answer


_Call = tuple[tuple[int, ...], tuple[NDArray[Any], ...], tuple[float, ...]]


def _problem(codes: Codes, observed: Observed, imagined: Imagined, growth: Growth) -> _Call:
    """Sizes, arrays and growth in the order of module.c."""
    check_together(codes, observed, imagined)
    m, trees, n = observed.bags.shape
    sizes = (codes.q, codes.d, codes.below.shape[1], len(codes.values), len(codes.below), n, imagined.e, m, trees)
    arrays = (codes.codes, codes.values, codes.starts, codes.below)
    real = (observed.rows, observed.told, observed.bags, observed.seeds)
    rules = (growth.attributes, growth.min_leaf, int(growth.splits == "random"), int(growth.spread == "total"))
    return (
        (*sizes, imagined.b),
        (*arrays, *real, imagined.rows, imagined.told, imagined.bags),
        (*rules, growth.min_gain, growth.min_variance),
    )


def _gain(gain: Gain) -> tuple[tuple[float, ...], tuple[NDArray[Any] | None, ...]]:
    """Numbers and arrays of the gain in the order of module.c."""
    limits, billing = gain.limits, gain.billing
    numbers = (FORMS.index(gain.form), len(limits.metric), int(gain.root_sigma), gain.sure_z, gain.zero_sigma_factor)
    money = (billing.price, billing.boot, billing.minimum) if billing else (None, None, None)
    bound = limits.bound if len(limits.metric) else None
    arrays = (gain.open, gain.best, gain.worst, gain.left, gain.ceiling, *money, limits.metric, limits.sign, bound)
    return numbers, arrays
