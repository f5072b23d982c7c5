"""The chance that a configuration fails, learnt from the trials so far.

Memory that does not suffice, flags that exclude each other and machines without a driver fail in regions of a space, not in single rows.
A logistic Gaussian process over the features learns where: a linear part finds the direction in which failures grow from few trials, a
local part bends it. Its prior says that configurations work. Out of memory has a prior of its own: what fails with little memory
seldom fails with more, so that every such failure raises a soft floor of memory.

Laplace's approximation (Rasmussen and Williams 2006, algorithms 3.1 and 3.2), averaged over settings by their evidence.

Shapes: q configurations, d features, n trials.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, log_expit

from lynceus.models.blas import one_thread
from lynceus.models.features import standard_inputs
from lynceus.trial.outcome import End, FailureReason, Observations

if TYPE_CHECKING:
    from lynceus.space.column import BoolArray, FloatArray, IntArray
    from lynceus.space.table import Space

_PRIOR = -2.5
"""Log odds of a failure before any trial: 8 %."""
_SIGNAL = 6.0
"""Prior std of the log odds: walls are steep."""
_SLOPES = (0.0, 1.5)
"""Prior mean of how the log odds fall with each standard deviation of ln memory: without and with a memory floor."""
_LENGTHS = (0.5, 1.0, 2.0)
"""Length scales of the local part, in standard deviations of a feature."""
_LINEAR = (0.2, 0.8)
"""Share of the prior variance that is linear."""
_STEPS, _HALVINGS, _TOLERANCE = 30, 12, 1e-6
_MOST_TRIALS = 400
"""The newest trials from which is learnt: the time grows with their cube."""
_MEMORY = re.compile(r"(^|_)(memory|mem|ram)(_|$)", re.IGNORECASE)


def chance_to_fail(space: Space, observations: Observations) -> FloatArray | None:
    """The chance that each configuration fails `[q]`; None as long as no failure was a configuration's fault.

    A run that was stopped at its timeout did not fail. Failures of machines, interruptions and what the user ended say nothing.
    """
    known = [seen for seen in observations if seen.outcome.reason is None or seen.outcome.reason.blames_configuration]
    known = known[-_MOST_TRIALS:]
    failed = np.array([seen.outcome.end is End.FAILED for seen in known], dtype=bool)
    if not failed.any():
        return None
    memory = any(seen.outcome.reason is FailureReason.OOM for seen in known)
    rows = np.array([seen.row for seen in known], dtype=np.int64)
    with one_thread():
        return _predicted(space, rows, failed, memory)


def _predicted(space: Space, rows: IntArray, failed: BoolArray, memory: bool) -> FloatArray:
    """Chances `[q]`, averaged over length scales, linear shares and slopes along memory by their evidence."""
    inputs, floor = standard_inputs(space), _memory_direction(space)
    slopes = _SLOPES if memory and floor is not None else (0.0,)
    chances, weights = [], []
    for length in _LENGTHS:
        for linear in _LINEAR:
            cross = _kernel(inputs, inputs[rows], length, linear)
            own = _SIGNAL**2 * (linear * (1.0 + np.square(inputs).sum(axis=1)) / 2.0 + 1.0 - linear)
            for slope in slopes:
                prior = np.full(len(inputs), _PRIOR) if floor is None else _PRIOR - slope * floor
                chance, evidence = _laplace(cross, own, rows, failed, prior)
                chances.append(chance)
                weights.append(evidence)
    share = np.exp(np.array(weights) - max(weights))
    return np.asarray((share / share.sum()) @ np.stack(chances))


@lru_cache(maxsize=16)
def _memory_direction(space: Space) -> FloatArray | None:
    """Standardised ln memory of every configuration `[q]`, summed over the columns that hold memory; None if there are none."""
    found = []
    for place, name in enumerate(space.feature_names):
        if _MEMORY.search(name) and space.feature_kinds[place] != "categorical":
            feature = space.features[:, place]
            size = np.log2(np.maximum(feature, 1e-12)) if space.feature_kinds[place] == "numeric" else feature
            found.append((size - size.mean()) / max(float(size.std()), 1e-12))
    return np.asarray(np.sum(found, axis=0)) if found else None


def _kernel(one: FloatArray, other: FloatArray, length: float, linear: float) -> FloatArray:
    """Prior covariance of the log odds `[q, n]`: a constant, a linear and a local part."""
    inner = one @ other.T
    squares = np.square(one).sum(axis=1)[:, None] + np.square(other).sum(axis=1)[None] - 2.0 * inner
    local = np.exp(-0.5 * np.maximum(squares, 0.0) / (length * length * one.shape[1]))
    return np.asarray(_SIGNAL**2 * (linear * (1.0 + inner) / 2.0 + (1.0 - linear) * local))


def _laplace(
    cross: FloatArray, own: FloatArray, rows: IntArray, failed: BoolArray, prior: FloatArray
) -> tuple[FloatArray, float]:
    """Chances to fail `[q]` and the log evidence.

    `cross [q, n]` is the prior covariance of all rows with the trials, `own [q]` the prior variance, `prior [q]` the prior log odds.
    """
    among = cross[rows] + 1e-6 * np.eye(len(rows))
    sign, middle = np.where(failed, 1.0, -1.0), prior[rows]
    weighed, value = np.zeros(len(rows)), float(log_expit(sign * middle).sum())
    for _ in range(_STEPS):
        latent = middle + among @ weighed
        factor, root = _factor(among, latent)
        target = root * root * (latent - middle) + sign * expit(-sign * latent)
        step = target - root * cho_solve(factor, root * (among @ target)) - weighed
        before, value, weighed = value, *_climbed(among, middle, sign, weighed, step, value)
        if value - before < _TOLERANCE:
            break
    factor, root = _factor(among, middle + among @ weighed)
    evidence = value - float(np.log(np.diag(factor[0])).sum())
    mean = prior + cross @ weighed
    known = solve_triangular(factor[0], root[:, None] * cross.T, lower=True)
    variance = np.maximum(own - np.square(known).sum(axis=0), 0.0)
    # The mean of a logistic function of a normal number (MacKay 1992).
    return expit(mean / np.sqrt(1.0 + np.pi / 8.0 * variance)), evidence


def _factor(among: FloatArray, latent: FloatArray) -> tuple[tuple[FloatArray, bool], FloatArray]:
    """The Cholesky factor of B = I + √W K √W and √W `[n]`, where W is the curvature of the logistic likelihood."""
    chance = expit(latent)
    root = np.sqrt(np.maximum(chance * (1.0 - chance), 1e-10))
    return cho_factor(np.eye(len(latent)) + root[:, None] * among * root, lower=True), root


def _climbed(
    among: FloatArray, middle: FloatArray, sign: FloatArray, weighed: FloatArray, step: FloatArray, value: float
) -> tuple[float, FloatArray]:
    """The log posterior and its argument after one Newton step, halved until it climbs: a full step may overshoot a steep wall."""
    for halvings in range(_HALVINGS):
        candidate = weighed + step / 2**halvings
        rise = among @ candidate
        reached = float(log_expit(sign * (middle + rise)).sum() - 0.5 * candidate @ rise)
        if reached >= value:
            return reached, candidate
    return value, weighed
