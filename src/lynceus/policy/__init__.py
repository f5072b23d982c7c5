"""Policies: which configuration to run next, when to stop a run, when to stop the search, what to recommend."""

from lynceus.policy.policy import Policy
from lynceus.policy.presets import PRESETS, preset
from lynceus.policy.recommendation import Recommendation
from lynceus.policy.retries import RetryRules
from lynceus.policy.timeouts.by_name import TIMEOUTS

__all__ = ["PRESETS", "TIMEOUTS", "Policy", "Recommendation", "RetryRules", "preset"]
