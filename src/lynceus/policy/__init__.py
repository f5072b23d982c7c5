"""Policies: records of parts, a table of presets, and the two pure functions that use them."""

from lynceus.history import Because, Stopped
from lynceus.policy.answer import BestPredicted, BestSeen
from lynceus.policy.decide import absorb, affordable_seconds, decide, order_of, used_up, worthwhile
from lynceus.policy.policy import Policy
from lynceus.policy.presets import PRESETS, TIMEOUTS, preset
from lynceus.policy.recommend import Recommendation, recommend

__all__ = [
    "PRESETS",
    "TIMEOUTS",
    "Because",
    "BestPredicted",
    "BestSeen",
    "Policy",
    "Recommendation",
    "Stopped",
    "absorb",
    "affordable_seconds",
    "decide",
    "order_of",
    "preset",
    "recommend",
    "used_up",
    "worthwhile",
]
