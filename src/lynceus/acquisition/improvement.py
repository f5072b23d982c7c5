"""Expected improvement over the best value so far: plain, constrained, truncated at a limit, per dollar."""

import numpy as np

from lynceus.distribution import Distribution, FloatArray, Numbers


def expected_improvement(belief: Distribution, best: Numbers) -> FloatArray:
    """EI = E[(best - Y)⁺] (Jones et al. 1998, eq. 15).

    >>> from lynceus.distribution import Normal
    >>> float(expected_improvement(Normal(5.0, 0.0), best=7.0))
    2.0
    """
    return belief.put(best)


def log_expected_improvement(belief: Distribution, best: Numbers) -> FloatArray:
    """ln EI, which still ranks candidates whose EI underflows (Ament et al. 2023, eq. 9)."""
    return belief.log_put(best)


def truncated_improvement(belief: Distribution, best: Numbers, ceiling: Numbers) -> FloatArray:
    """E[(best - Y)⁺ 1{Y <= ceiling}]: improvement that counts only within a limit on the same quantity.

    Exact where objective and limit share one model, as cost and deadline do (cost = time · price, so the deadline is a
    ceiling per row on cost); EI · P(Y <= ceiling) would count the same uncertainty twice.
    """
    return np.maximum(belief.truncated_put(best, np.minimum(best, ceiling)), 0.0)


def log_truncated_improvement(belief: Distribution, best: Numbers, ceiling: Numbers) -> FloatArray:
    """ln E[(best - Y)⁺ 1{Y <= ceiling}] = ln(put(k) + (best - k) P(Y <= k)) with k = min(best, ceiling)."""
    reach = np.minimum(best, ceiling)
    with np.errstate(divide="ignore"):
        certain = np.log(np.subtract(best, reach)) + belief.log_cdf(reach)
    return np.logaddexp(belief.log_put(reach), certain)


def constrained_improvement(gain: FloatArray, *probabilities: Numbers) -> FloatArray:
    """EIc = EI · Π P(limit j is met), for limits on separately modelled quantities (Gardner et al. 2014, eq. 5)."""
    for probability in probabilities:
        gain = gain * probability
    return gain


def capped_cost(belief: Distribution, cap: Numbers) -> FloatArray:
    """E[min(cost, cap)]: what a run costs that will be stopped when it has cost `cap`."""
    return belief.capped_mean(cap)


def per_dollar(gain: FloatArray, cost: Numbers) -> FloatArray:
    """Gain per unit of expected cost; a gain that costs nothing is worth everything, no gain is worth nothing.

    >>> per_dollar(np.array([1.0, 1.0, 0.0]), np.array([4.0, 0.0, 0.0]))
    array([0.25,  inf, 0.  ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(gain, 0.0), 0.0, gain / np.maximum(cost, 0.0))
