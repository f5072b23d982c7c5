"""What happened in a run, and what the model learns from it.

An order is an intention, an outcome is a fact, and a training target is what the model learns. An observation holds all three, so that
an estimate never overwrites a measurement.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lynceus.trial.order import Order

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


@dataclass(frozen=True, slots=True)
class TrainingTarget:
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

    @property
    def row(self) -> int:
        """The configuration that ran."""
        return self.order.row


Observations = tuple[Observation, ...]
