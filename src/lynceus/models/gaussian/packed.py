"""Normal systems C = K + diag(variances) of h members, each K a packed lower triangle `[n (n + 1) / 2]`, row after row.

Half of a symmetric matrix is half of the covariances to compute. Small systems are solved by a compiled kernel, many members at a
time; large ones, and all of them without the kernel, by LAPACK. Both give the same results but for rounding.

>>> packed, y = np.array([[2.0, 1.0, 2.0]]), np.array([[1.0, 0.0]])
>>> unpacked(packed)[0]
array([[2., 0.],
       [1., 2.]])
>>> systems(packed, y, np.zeros((1, 2)), inverse=True).solved.round(3)
array([[ 0.667, -0.333]])
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lynceus.models.gaussian.kernel import inverse_lower, lower_factor
from lynceus.space.column import FloatArray, IntArray

try:
    from lynceus.models.gaussian._packed import solve as _compiled_solve

    compiled: bool = True
    """Whether the compiled kernel is installed."""
except ImportError:
    compiled = False

_SMALL = 64
"""A single system up to this size is solved faster by the compiled kernel than by LAPACK, four or more systems up to `_LARGE`."""
_LARGE = 256
_CORNER = 1e12
"""Larger than any squared length of a whitened, standardised target, so that the bordered matrix has a factor."""


@dataclass(frozen=True, eq=False, slots=True)
class Systems:
    """What is asked of h systems with the right-hand sides `mean [h, n]`; C = L Lᵀ."""

    log_size: FloatArray
    """Σ ln L_ii = ½ ln |C|, `[h]`."""
    squares: FloatArray
    """|L⁻¹ mean|², `[h]`."""
    diagonal: FloatArray
    """Of C⁻¹, `[h, n]`; empty where the inverse was not asked for."""
    solved: FloatArray
    """C⁻¹ mean, `[h, n]`; empty likewise."""


def systems(packed: FloatArray, mean: FloatArray, variance: FloatArray, *, inverse: bool) -> Systems:
    """Solve the systems with K `packed [h, n (n + 1) / 2]`, `mean` and `variance [h, n]`."""
    members, size = variance.shape
    if compiled and size <= (_SMALL if members < 4 else _LARGE):
        found = Systems(*(np.empty(shape) for shape in [(members,)] * 2 + [(members, size if inverse else 0)] * 2))
        wanted = (found.diagonal, found.solved) if inverse else (None, None)
        given = tuple(np.ascontiguousarray(part) for part in (packed, mean, variance))
        if _compiled_solve((members, size), given, (found.log_size, found.squares, *wanted)):
            return found
    return _inverted(packed, mean, variance) if inverse else _bordered(packed, mean, variance)


def log_evidence(packed: FloatArray, y: FloatArray, variance: FloatArray) -> FloatArray:
    """Log density `[h]` of `y [n]` under N(0, C), with site variances `[h, n]` (Rasmussen and Williams 2006, eq. 2.30)."""
    members, size = variance.shape
    found = systems(packed, np.broadcast_to(y, (members, size)), variance, inverse=False)
    return np.asarray(-0.5 * found.squares - found.log_size - 0.5 * size * np.log(2.0 * np.pi))


def packed_lower(matrices: FloatArray) -> FloatArray:
    """The lower triangles of matrices `[h, n, n]`."""
    rows, columns = lower_pairs(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def unpacked(packed: FloatArray, variance: FloatArray | None = None) -> FloatArray:
    """K + diag(variance) as lower triangles of matrices `[h, n, n]`, zero above the diagonal."""
    size = int(np.sqrt(2 * packed.shape[1]))
    rows, columns = lower_pairs(size)
    matrices = np.zeros((len(packed), size, size))
    matrices[:, rows, columns] = packed
    if variance is not None:
        matrices[:, np.arange(size), np.arange(size)] += variance
    return matrices


@lru_cache(maxsize=8)
def lower_pairs(size: int) -> tuple[IntArray, IntArray]:
    """Row and column of each number of a packed triangle."""
    rows, columns = np.tril_indices(size)
    return rows, columns


def _inverted(packed: FloatArray, mean: FloatArray, variance: FloatArray) -> Systems:
    """By LAPACK; a singular matrix gets a jitter (`lower_factor`)."""
    inverse = inverse_lower(lower_factor(unpacked(packed, variance)))
    whitened = (inverse @ mean[..., np.newaxis])[..., 0]
    solved = (inverse.transpose(0, 2, 1) @ whitened[..., np.newaxis])[..., 0]
    log_size = -np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
    return Systems(log_size, np.square(whitened).sum(axis=1), np.square(inverse).sum(axis=1), solved)


def _bordered(packed: FloatArray, mean: FloatArray, variance: FloatArray) -> Systems:
    """By LAPACK, without the inverse: the factor of C with `mean` as one more row has L⁻¹ mean in that row."""
    members, size = variance.shape
    matrices = np.zeros((members, size + 1, size + 1))
    matrices[:, :size, :size] = unpacked(packed, variance)
    matrices[:, size, :size] = mean
    matrices[:, size, size] = _CORNER
    factor = lower_factor(matrices)
    log_size = np.log(np.diagonal(factor, axis1=1, axis2=2)[:, :size]).sum(axis=1)
    none = np.empty((members, 0))
    return Systems(log_size, np.square(factor[:, size, :size]).sum(axis=1), none, none)
