"""What a run is worth, as pure functions on arrays: higher is better, except the Gittins index (lower is better).

Every function takes a belief (`lynceus.distribution`) about the quantity to be made small and returns an array of the
belief's shape. Improvements multiply with probabilities and divide by money, so compositions are plain arithmetic:

>>> import numpy as np
>>> from lynceus.distribution import Normal
>>> cost, accuracy = Normal(np.array([4.0, 9.0]), 1.0), Normal(np.array([0.90, 0.99]), 0.05)
>>> gain = constrained_improvement(expected_improvement(cost, best=5.0), probability_within(accuracy, at_least=0.85))
>>> per_dollar(gain, cost.expectation()).round(4)
array([0.2279, 0.    ])
"""

from lynceus.acquisition.billing import billed_cost, billed_improvement, log_billed_improvement
from lynceus.acquisition.gittins import gittins_index
from lynceus.acquisition.improvement import (
    capped_cost,
    constrained_improvement,
    expected_improvement,
    log_expected_improvement,
    log_truncated_improvement,
    per_dollar,
    truncated_improvement,
)
from lynceus.acquisition.probability import log_probability_within, probability_within

__all__ = [
    "billed_cost",
    "billed_improvement",
    "capped_cost",
    "constrained_improvement",
    "expected_improvement",
    "gittins_index",
    "log_billed_improvement",
    "log_expected_improvement",
    "log_probability_within",
    "log_truncated_improvement",
    "per_dollar",
    "probability_within",
    "truncated_improvement",
]
