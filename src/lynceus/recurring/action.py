"""What to do about a recurring job, why, and what is expected of it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lynceus.problem.units import format_money
from lynceus.recurring.record import NOTHING, Basis
from lynceus.space.column import Scalar
from lynceus.trial.nan_equality import NanEquality


class ActionKind(enum.StrEnum):
    """What to do."""

    KEEP = "keep"
    """Run the adopted configuration."""
    CANARY = "canary"
    """Try another configuration on the next production run, and only on that one."""
    ADOPT = "adopt"
    """A canary proved itself: make it the production configuration."""
    RETURN = "return"
    """A canary, or a version on probation, was late, failed or cost more: run the last good configuration."""
    REPRICE = "reprice"
    """Prices changed, and another configuration whose time is known is cheaper now: make it the production configuration."""
    SUGGEST = "suggest"
    """The user decides: what would be tried or changed. Until then, run the adopted configuration."""
    RETUNE = "retune"
    """The model no longer holds and nothing safe is left to try: search again, as a study of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Effect(NanEquality):
    """What is expected of a change, per run of the next input."""

    runtime_s: float = math.nan
    cost_usd: float = math.nan
    late_chance: float = math.nan
    """Chance of the changed configuration to be late."""
    runtime_before_s: float = math.nan
    cost_before_usd: float = math.nan
    late_chance_before: float = math.nan
    trial_usd: float = 0.0
    """What trying it is expected to cost more than the adopted configuration."""

    @property
    def saving_usd(self) -> float:
        """Dollars saved per run; negative if the change costs money, as one that meets the deadline again may."""
        return self.cost_before_usd - self.cost_usd

    def record(self) -> dict[str, float | None]:
        """As JSON; unknown numbers are null."""
        names = (*self.__slots__, "saving_usd")
        return {name: value if math.isfinite(value := getattr(self, name)) else None for name in names}


def saving_text(usd: float) -> str:
    """What a change does to the cost of every run, after "would" or "expected to".

    >>> saving_text(0.1), saving_text(-0.1)
    ('save $0.10 a run', 'cost $0.10 more a run')
    """
    return f"save {format_money(usd)} a run" if usd >= 0 else f"cost {format_money(-usd)} more a run"


@dataclass(frozen=True, slots=True)
class Action:
    """What to do, why, and what is expected of it."""

    kind: ActionKind
    reason: str
    """One sentence for the user."""
    params: Mapping[str, Scalar] | None = None
    """The configuration that it is about; None where it is the adopted one."""
    version: int | None = None
    """Its number, if it has one already: what to return to, or the canary to adopt."""
    timeout_s: float = math.inf
    """A canary is stopped after so many seconds."""
    reserved_usd: float = 0.0
    """The most that trying may cost more than the adopted configuration; of the month's allowance."""
    instead_usd: float | None = None
    """Of a canary: what the adopted configuration is expected to cost instead (`ProductionRun.instead_usd`)."""
    budget_usd: float = 0.0
    """Of a search: the most that it may spend."""
    effect: Effect = field(default_factory=Effect)
    evidence: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """The numbers behind it, as JSON values."""
    basis: Basis = field(default_factory=Basis)
    """What was known: to be stored with the version that the action makes."""
