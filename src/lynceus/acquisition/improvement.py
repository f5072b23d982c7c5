"""Expected improvement over the best value so far: plain, truncated at a constraint, and of billed runs.

A billed run costs price · max(T + boot, minimum), where T is the job's own time (the modelled quantity), boot the billed time
before it starts, and minimum the least time billed. Let f = minimum - boot be the time up to which a run costs the minimum, and
a = best/price - boot the time at which it costs as much as the best so far. Then

    (best - cost)⁺ 1{T <= deadline} = price · (a - max(T, f))⁺ 1{T <= deadline}.

For a <= f it is 0. Otherwise, with k = min(a, deadline), times up to f contribute a - f and times in (f, k] contribute a - T:

    E = price · (E[(a - T) 1{T <= k}] - E[(f - T) 1{T <= min(f, k)}]),

because on {T <= min(f, k)} the difference of the two terms is a - f. Both expectations are truncated puts.
"""

import numpy as np

from lynceus.models.distribution import Distribution, Numbers
from lynceus.space.column import FloatArray


def expected_improvement(prediction: Distribution, best: Numbers) -> FloatArray:
    """EI = E[(best - Y)⁺] (Jones et al. 1998, eq. 15).

    >>> from lynceus.models.distribution import Normal
    >>> float(expected_improvement(Normal(5.0, 0.0), best=7.0))
    2.0
    """
    return prediction.put(best)


def truncated_improvement(prediction: Distribution, best: Numbers, ceiling: Numbers) -> FloatArray:
    """E[(best - Y)⁺ 1{Y <= ceiling}]: improvement that counts only where a constraint on the same quantity holds.

    Exact where objective and constraint share one model, as cost and deadline do (cost = time · price, so the deadline is a
    ceiling per row on cost); EI · P(Y <= ceiling) would count the same uncertainty twice.
    """
    return np.maximum(prediction.truncated_put(best, np.minimum(best, ceiling)), 0.0)


def improvement_within(
    prediction: Distribution, best: Numbers, low: Numbers, high: Numbers, *, maximise: bool = False
) -> FloatArray:
    """E[(best - Y)⁺ 1{low <= Y <= high}]: improvement that counts only between limits on the same quantity.

    `maximise`: E[(Y - best)⁺ 1{…}]. With P(x) = E[(best - Y) 1{Y <= x}], a truncated put, both are differences of two P.

    >>> from lynceus.models.distribution import Normal
    >>> improvement_within(Normal(5.0, 0.0), 7.0, np.array([-np.inf, 6.0]), np.inf)
    array([2., 0.])
    >>> float(improvement_within(Normal(5.0, 0.0), 4.0, -np.inf, np.inf, maximise=True))
    1.0
    """
    unlimited = bool(np.all(np.isneginf(low)) and np.all(np.isposinf(high)))
    if unlimited:
        return prediction.call(best) if maximise else prediction.put(best)
    start, end = (np.maximum(low, best), high) if maximise else (low, np.minimum(high, best))
    until = prediction.truncated_put(best, np.maximum(start, end))
    before = np.where(np.isneginf(start), 0.0, prediction.truncated_put(best, start))
    return np.maximum(before - until if maximise else until - before, 0.0)


def billed_improvement(
    seconds: Distribution,
    best: Numbers,
    price: Numbers,
    boot: Numbers = 0.0,
    minimum: Numbers = 0.0,
    deadline: Numbers = np.inf,
) -> FloatArray:
    """E[(best - price · max(T + boot, minimum))⁺ 1{T <= deadline}], best in dollars, price in dollars per second.

    >>> from lynceus.models.distribution import LogNormal
    >>> known = LogNormal(np.log([30.0, 90.0, 90.0]), 0.0)
    >>> deadline = np.array([np.inf, np.inf, 80.0])
    >>> billed_improvement(known, best=2.0, price=0.01, minimum=60.0, deadline=deadline).round(9)
    array([1.4, 1.1, 0. ])
    """
    even = np.asarray(np.divide(best, price) - boot)
    floor = np.asarray(np.subtract(minimum, boot))
    reach = np.minimum(even, deadline)
    gain = seconds.truncated_put(even, reach) - seconds.truncated_put(floor, np.minimum(floor, reach))
    return np.where(even > floor, price * np.maximum(gain, 0.0), 0.0)
