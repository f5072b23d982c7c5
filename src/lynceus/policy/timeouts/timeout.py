"""A timeout: when a run is stopped, and which value the model is trained on then."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.policy.interfaces import CensoredValue, TimeoutRule
from lynceus.policy.timeouts.censoring import LowerBound
from lynceus.policy.timeouts.rules import NoTimeout


@dataclass(frozen=True)
class Timeout:
    """When runs are stopped, and their training target then. The budget may stop a run without a timeout rule, so both are needed."""

    rule: TimeoutRule = field(default_factory=NoTimeout)
    censored: CensoredValue = field(default_factory=LowerBound)
