"""How likely a quantity keeps its limits."""

import numpy as np

from lynceus.distribution import Distribution, FloatArray, Numbers


def probability_within(
    belief: Distribution, at_most: Numbers | None = None, at_least: Numbers | None = None
) -> FloatArray:
    """P(at_least <= Y <= at_most); either bound may be absent.

    >>> from lynceus.distribution import Normal
    >>> float(probability_within(Normal(0.85, 0.0), at_least=0.85))
    1.0
    """
    return np.exp(log_probability_within(belief, at_most, at_least))


def log_probability_within(
    belief: Distribution, at_most: Numbers | None = None, at_least: Numbers | None = None
) -> FloatArray:
    """ln P(at_least <= Y <= at_most), finite where the probability itself underflows.

    Two bounds are a difference of two tails, taken on the side where the tails are small.
    """
    high = np.inf if at_most is None else at_most
    low = np.nextafter(-np.inf if at_least is None else at_least, -np.inf)  # so that Y = at_least counts when known
    if at_least is None:
        return belief.log_cdf(high)
    if at_most is None:
        return belief.log_sf(low)
    log_below, log_above = belief.log_cdf(low), belief.log_sf(high)
    log_left = _log_difference(belief.log_cdf(high), log_below)
    log_right = _log_difference(belief.log_sf(low), log_above)
    return np.where(log_below < log_above, log_left, log_right)


def _log_difference(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """ln(e^larger - e^smaller); -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(np.minimum(smaller - larger, 0.0))
        return np.where(larger == -np.inf, -np.inf, larger + np.log(share))
