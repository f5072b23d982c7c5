"""Ensembles of regression trees over a finite table, for many imagined states at once. Arrays in, arrays out.

All states share the real observations and add a few imagined ones; inserting an observation changes only the
affected part of a tree, so a state costs microseconds. `native` is the compiled implementation, `numpy_twin` the same in
NumPy; both have the functions `predict` and `pick`, and the package exports the fastest one that is installed.

>>> import numpy as np
>>> table = encode([[1.0], [2.0], [4.0]])
>>> seen = Observed(rows=[0, 2], target=[[10.0, 30.0]], bags=np.ones((1, 5, 2), int), seeds=np.arange(5)[None])
>>> mean, std = predict(table, seen, None, Growth(attributes=1))
>>> mean[0, :, 0].tolist(), std[0, :, 0].tolist()
([10.0, 10.0, 30.0], [0.0, 0.0, 0.0])
"""

import functools
import warnings

from .acquisition import Acquisition, Billing, Constraints, Picked
from .values import Codes, Floats, Growth, Imagined, Observed, encode, no_imagined

try:
    from .native import pick as _pick
    from .native import predict as _predict

    compiled: bool = True
    """Whether the compiled kernel is installed."""
except ImportError:
    from .numpy_twin import pick as _pick
    from .numpy_twin import predict as _predict

    compiled = False


def predict(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """Mean and standard deviation [b,q,m] of every metric at every candidate row in every state.

    `imagined` None is one state with the real observations only. The result does not depend on `threads`.
    """
    _warn_once()
    return _predict(codes, observed, imagined, growth, threads)


def pick(
    codes: Codes,
    observed: Observed,
    imagined: Imagined | None,
    growth: Growth,
    acquisition: Acquisition,
    threads: int = 1,
) -> Picked:
    """The row with the largest acquisition value in every state, with its moments; other predictions are not returned."""
    _warn_once()
    return _pick(codes, observed, imagined, growth, acquisition, threads)


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
    "Acquisition",
    "Billing",
    "Codes",
    "Constraints",
    "Growth",
    "Imagined",
    "Observed",
    "Picked",
    "compiled",
    "encode",
    "no_imagined",
    "pick",
    "predict",
]
