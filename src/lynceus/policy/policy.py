"""A policy is a frozen record of five small parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.parts import Answer, Chooser, Stop, Surrogate
from lynceus.policy.answer import BestSeen
from lynceus.stopping import Never
from lynceus.timeout import Timeout


@dataclass(frozen=True)
class Policy:
    """CherryPick, Lynceus, random search: rows of one table, each a value of this type."""

    name: str
    choose: Chooser
    surrogate: Surrogate | None = None
    """Nothing: the choosers need no model."""
    timeout: Timeout = field(default_factory=Timeout)
    stop: Stop = field(default_factory=Never)
    answer: Answer = field(default_factory=BestSeen)
