"""What happened in a run, and what the model learns from it.

An order is an intention, an outcome is a fact, and a training target is what the model learns. An observation holds all three, so that
an estimate never overwrites a measurement.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from lynceus.problem.units import format_duration, format_money
from lynceus.trial.nan_equality import NanEquality
from lynceus.trial.order import Order
from lynceus.trial.usage import Usage

_ROUNDING = 1e-9
"""Share of a timeout or a reservation below which more of it is the error of a sum."""
_LATE_S, _LATE = 1.0, 0.01
"""Seconds, and share of a timeout, within which a busy machine may stop a run late without a word."""
_NO_METRICS: Mapping[str, float] = MappingProxyType({})


class End(enum.StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    TIMEOUT = "capped"
    """Stopped by its timeout: its true time is longer than what ran."""
    FAILED = "failed"


class FailureReason(enum.StrEnum):
    """Whose fault a failure was."""

    INFRA = "infra"
    """The machine, the network, the queue: try again, learn nothing."""
    PREEMPTED = "preempted"
    """The cloud took the machine back: try again, learn nothing."""
    OOM = "oom"
    """The job ran out of memory: the configuration is at fault."""
    JOB = "job"
    """The job itself failed: the configuration is at fault."""
    USER = "user"
    """The user stopped it: do not try again, learn nothing."""

    @property
    def blames_configuration(self) -> bool:
        """Whether the same configuration would fail again."""
        return self in (FailureReason.OOM, FailureReason.JOB)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened: facts only."""

    end: End
    seconds: float
    """How long the job itself ran, boot not included."""
    charged_usd: float
    metrics: Mapping[str, float] = field(default_factory=lambda: _NO_METRICS)
    """What the job reported last, by name."""
    trace: tuple[tuple[float, float], ...] = ()
    """Progress while it ran: (seconds, progress) pairs in order of time."""
    reason: FailureReason | None = None
    """Whose fault, when the run failed."""
    detail: str = ""
    """One sentence for the user: the exit code, the last line of an error."""
    usage: Usage | None = field(default=None, kw_only=True)
    """What it used of its machine; None where no supervisor measured it."""
    oracle_s: float | None = None
    """Replay only: the full time that a stopped run would have taken. Live runs cannot know it."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"a run cannot take {self.seconds!r} seconds")
        if not (math.isfinite(self.charged_usd) and self.charged_usd >= 0):
            raise ValueError(f"a run cannot be charged {self.charged_usd!r} dollars")
        if (self.end is End.FAILED) != (self.reason is not None):
            raise ValueError(f"a run that {self.end} has reason {self.reason!r}; failed runs, and only they, have one")

    @classmethod
    def failed(
        cls,
        reason: FailureReason,
        detail: str,
        *,
        seconds: float = 0.0,
        charged_usd: float = 0.0,
        trace: tuple[tuple[float, float], ...] = (),
    ) -> Outcome:
        """The outcome of a run that failed."""
        return cls(End.FAILED, seconds, charged_usd, trace=trace, reason=reason, detail=detail)


def overruns(order: Order, outcome: Outcome) -> tuple[str, ...]:
    """By how much a run went beyond its timeout, or its charge beyond the reservation: clauses for the user; empty if it did not."""
    notes = []
    if _finished_late(order, outcome):
        notes.append(
            f"it finished after {format_duration(outcome.seconds)}, beyond its timeout of {format_duration(order.timeout_s)}, "
            "and counts as stopped"
        )
    elif outcome.seconds > order.timeout_s + max(_LATE_S, _LATE * order.timeout_s):
        notes.append(
            f"it ran for {format_duration(outcome.seconds)}, beyond its timeout of {format_duration(order.timeout_s)}"
        )
    if beyond := beyond_reservation(order, outcome):
        notes.append(
            f"it was charged {format_money(beyond)} more than the {format_money(order.reserved_usd)} reserved for it"
        )
    return tuple(notes)


def beyond_reservation(order: Order, outcome: Outcome) -> float:
    """Dollars that a run was charged beyond what was reserved for it; 0 for one without a timeout, whose charge nothing bounds."""
    exceeded = math.isfinite(order.timeout_s) and outcome.charged_usd > order.reserved_usd * (1 + _ROUNDING)
    return outcome.charged_usd - order.reserved_usd if exceeded else 0.0


def accounted(order: Order, outcome: Outcome) -> Outcome:
    """The outcome as the record keeps it: a run that finished beyond its timeout counts as stopped, and `detail` names every overrun.

    Seconds and charge stay as they were: nothing is cut off.
    """
    notes = overruns(order, outcome)
    if not notes:
        return outcome
    end = End.TIMEOUT if _finished_late(order, outcome) else outcome.end
    return replace(outcome, end=end, detail="; ".join(filter(None, [outcome.detail, *notes])))


def _finished_late(order: Order, outcome: Outcome) -> bool:
    return outcome.end is End.FINISHED and outcome.seconds > order.timeout_s * (1 + _ROUNDING)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTarget(NanEquality):
    """What the model learns from a run."""

    seconds: float
    """The run's time: measured, estimated, or a lower bound."""
    metrics: Mapping[str, float] = field(default_factory=lambda: _NO_METRICS)
    censored: bool = False
    """The true time is longer than `bound_s`; models that handle censoring ignore the estimate."""
    bound_s: float = math.nan
    """What really ran, when censored."""


@dataclass(frozen=True, slots=True)
class Observation:
    """An order with its outcome and its training target (None: the model learns nothing from it)."""

    order: Order
    outcome: Outcome
    target: TrainingTarget | None
    started_s: float | None = field(default=None, compare=False)
    """When it was started, seconds since the epoch; None if that is not known, as for imported ones."""
    ended_s: float | None = field(default=None, compare=False)
    """When its end was written down."""

    @property
    def row(self) -> int:
        """The configuration that ran."""
        return self.order.row


Observations = tuple[Observation, ...]
