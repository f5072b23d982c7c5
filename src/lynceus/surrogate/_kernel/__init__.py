"""Ensembles of regression trees over a finite table, for many imagined situations at once. Arrays in, arrays out.

All situations share the real observations and add a few imagined ones; inserting an observation changes only the part
of a tree that it must, so a situation costs microseconds. `native` is the compiled implementation, `twin` the same in
NumPy; both have the functions `believe` and `pick`, and the package offers the faster one that is there.

>>> import numpy as np
>>> table = encode([[1.0], [2.0], [4.0]])
>>> seen = Observed(rows=[0, 2], told=[[10.0, 30.0]], bags=np.ones((1, 5, 2), int), seeds=np.arange(5)[None])
>>> mean, std = believe(table, seen, None, Growth(attributes=1))
>>> mean[0, :, 0].tolist(), std[0, :, 0].tolist()
([10.0, 10.0, 30.0], [0.0, 0.0, 0.0])
"""

import functools
import warnings

from .gain import Billing, Gain, Limits, Picked
from .values import Codes, Floats, Growth, Imagined, Observed, encode, nothing_imagined

try:
    from .native import believe as _believe
    from .native import pick as _pick

    compiled: bool = True
    """Whether the compiled kernel is there."""
except ImportError:
    from .twin import believe as _believe
    from .twin import pick as _pick

    compiled = False


def believe(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """Mean and standard deviation [b,q,m] of every metric at every candidate row in every situation.

    `imagined` None is one situation with the real observations only. The result does not depend on `threads`.
    """
    _warn_once()
    return _believe(codes, observed, imagined, growth, threads)


def pick(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, gain: Gain, threads: int = 1
) -> Picked:
    """The row of largest gain in every situation, its gain and moments; beliefs over all rows are made and dropped."""
    _warn_once()
    return _pick(codes, observed, imagined, growth, gain, threads)


@functools.cache
def _warn_once() -> None:
    if not compiled:
        warnings.warn(
            "the compiled kernel is missing (no C compiler at install time); "
            "the NumPy twin is used and look-ahead will be slow",
            RuntimeWarning,
            stacklevel=3,
        )


__all__ = [
    "Billing",
    "Codes",
    "Gain",
    "Growth",
    "Imagined",
    "Limits",
    "Observed",
    "Picked",
    "believe",
    "compiled",
    "encode",
    "nothing_imagined",
    "pick",
]
