"""A fixed longest time of every run, on top of another timeout rule."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.models.state import State
from lynceus.policy.interfaces import TimeoutRule
from lynceus.policy.timeouts.rules import NoTimeout
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class AtMost:
    """The smaller of a fixed time and another rule's; it also stops runs of the initial design, because they may hang, too."""

    seconds: float
    rule: TimeoutRule = field(default_factory=NoTimeout)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"a timeout of {self.seconds!r} seconds stops every run at once; give a positive number")

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop."""
        return min(self.seconds, self.rule(state, plan))
