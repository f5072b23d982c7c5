"""A policy is a frozen value: how to choose runs, the model, timeouts, when to stop, the recommendation and its confirmation."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.models.interfaces import Surrogate
from lynceus.policy.answer import BestSeen
from lynceus.policy.interfaces import Answer, Chooser, Confirm, Stop
from lynceus.policy.stopping import Never
from lynceus.policy.timeouts.timeout import Timeout


@dataclass(frozen=True)
class Policy:
    """CherryPick, Lynceus, random search: each is a value of this type, see `lynceus.policy.presets`."""

    name: str
    choose: Chooser
    surrogate: Surrogate | None = None
    """None when the choosers need no model."""
    timeout: Timeout = field(default_factory=Timeout)
    stop: Stop = field(default_factory=Never)
    answer: Answer = field(default_factory=BestSeen)
    confirm: Confirm | None = None
    """Whether the best configuration runs again before it is recommended; None: only if the user says so."""
