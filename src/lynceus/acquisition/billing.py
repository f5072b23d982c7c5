"""Improvement and expected cost when a run is billed: cost = price · max(T + boot, minimum).

T is the job's own time (the modelled quantity), boot the paid time before it starts, minimum the least time billed.
Write f = minimum - boot for the time up to which a run costs the minimum, and a = best/price - boot for the time at
which it costs as much as the best so far. Then

    (best - cost)⁺ 1{T <= deadline} = price · (a - max(T, f))⁺ 1{T <= deadline}.

For a <= f it is 0. Otherwise, with k = min(a, deadline), the times up to f count a - f and those in (f, k] count a - T:

    E = price · (E[(a - T) 1{T <= k}] - E[(f - T) 1{T <= min(f, k)}]),

because on {T <= min(f, k)} the two terms leave a - f. Both expectations are truncated puts. Likewise, since
max(min(T, c), f) = f + min(T, c) - min(T, f) for c >= f, the expected cost of a run that is stopped after c seconds is
price · (minimum + E[min(T, c)] - E[min(T, f)]).
"""

import numpy as np

from lynceus.acquisition.improvement import log_truncated_improvement
from lynceus.distribution import Distribution, FloatArray, Numbers


def billed_improvement(
    seconds: Distribution,
    best: Numbers,
    price: Numbers,
    boot: Numbers = 0.0,
    minimum: Numbers = 0.0,
    deadline: Numbers = np.inf,
) -> FloatArray:
    """E[(best - price · max(T + boot, minimum))⁺ 1{T <= deadline}], best in dollars, price in dollars per second.

    >>> from lynceus.distribution import LogNormal
    >>> known = LogNormal(np.log([30.0, 90.0, 90.0]), 0.0)
    >>> deadline = np.array([np.inf, np.inf, 80.0])
    >>> billed_improvement(known, best=2.0, price=0.01, minimum=60.0, deadline=deadline).round(9)
    array([1.4, 1.1, 0. ])
    """
    even, floor, reach = _landmarks(best, price, boot, minimum, deadline)
    gain = seconds.truncated_put(even, reach) - seconds.truncated_put(floor, np.minimum(floor, reach))
    return np.where(even > floor, price * np.maximum(gain, 0.0), 0.0)


def log_billed_improvement(
    seconds: Distribution,
    best: Numbers,
    price: Numbers,
    boot: Numbers = 0.0,
    minimum: Numbers = 0.0,
    deadline: Numbers = np.inf,
) -> FloatArray:
    """The logarithm of `billed_improvement`, finite where the improvement itself underflows."""
    even, floor, reach = _landmarks(best, price, boot, minimum, deadline)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_whole = log_truncated_improvement(seconds, even, reach)
        log_spared = seconds.log_put(floor)
        log_long = np.where(
            log_spared == -np.inf, log_whole, log_whole + np.log1p(-np.exp(np.minimum(log_spared - log_whole, 0.0)))
        )
        log_short = np.log(even - floor) + seconds.log_cdf(reach)
        log_gain = np.log(price) + np.where(reach > floor, log_long, log_short)
    return np.where(even > floor, log_gain, -np.inf)


def billed_cost(
    seconds: Distribution, price: Numbers, boot: Numbers = 0.0, minimum: Numbers = 0.0, cap: Numbers = np.inf
) -> FloatArray:
    """E[price · max(min(T, cap) + boot, minimum)]: the expected bill of a run that is stopped after `cap` seconds.

    >>> from lynceus.distribution import LogNormal
    >>> billed_cost(LogNormal(np.log([30.0, 90.0, 900.0]), 0.0), price=0.01, minimum=60.0, cap=120.0).round(9)
    array([0.6, 0.9, 1.2])
    """
    floor = np.subtract(minimum, boot)
    beyond = seconds.capped_mean(np.maximum(cap, floor)) - seconds.capped_mean(floor)
    return np.asarray(price * (minimum + np.maximum(beyond, 0.0)))


def _landmarks(
    best: Numbers, price: Numbers, boot: Numbers, minimum: Numbers, deadline: Numbers
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The times a, f and k of the module's text."""
    even = np.asarray(np.divide(best, price) - boot)
    return even, np.asarray(np.subtract(minimum, boot)), np.minimum(even, deadline)
