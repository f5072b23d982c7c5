"""What was asked for and what happened: plan, order, outcome, observation, and why it came to an end.

An order is an intention, an outcome is a fact, and `Told` is what the model hears about it. The three stand side by side in an
observation, so that an estimate never overwrites what was measured.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

_NO_METRICS: Mapping[str, float] = MappingProxyType({})


class End(enum.StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    CAPPED = "capped"
    """Stopped by its cap: its true time is longer than what ran."""
    FAILED = "failed"


class Reason(enum.StrEnum):
    """Whose fault a failure was."""

    INFRA = "infra"
    """The machine, the network, the queue: try again, learn nothing."""
    PREEMPTED = "preempted"
    """The cloud took the machine back: try again, learn nothing."""
    OOM = "oom"
    """The job ran out of memory: the configuration is at fault."""
    JOB = "job"
    """The job ended with an error by itself: the configuration is at fault."""
    USER = "user"
    """A person stopped it: learn nothing, do not try again by yourself."""

    @property
    def blames_configuration(self) -> bool:
        """Whether the same configuration would fail again."""
        return self in (Reason.OOM, Reason.JOB)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the model believed of a row when it was ordered, in the model's own units (see `Belief`)."""

    form: Literal["cost", "log time"]
    """`cost` (dollars, normal) or `log time` (natural logarithm of seconds, normal)."""
    mean: tuple[float, ...]
    """One mean per modelled target: time first, then the metrics of the problem."""
    std: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a chooser wants to run, and what it thought."""

    row: int
    why: str
    """One clause for people: `Latin hypercube 3 of 12`, `expected gain $0.0009 for $0.0041`."""
    stoppable: bool = True
    """Whether a timeout may end the run early; initial designs of the papers run to the end."""
    score: float = math.nan
    """What the chooser maximised (gain per dollar of the path, for example)."""
    gain: float = math.nan
    """Expected gain of this row alone, in units of the goal."""
    best_gain: float = math.nan
    """Largest expected gain over all rows; stopping rules read it."""
    best_rate: float = math.nan
    """Largest expected gain per expected dollar of a single run, over all rows."""
    probability: float = math.nan
    """Chance that the row keeps every limit."""
    usd: float = math.nan
    """Dollars that the chooser expects the run to be charged."""
    expected: Expected | None = None
    """The model's belief about this row; nothing when no model was asked."""
    path: tuple[int, ...] = ()
    """Rows that a look-ahead would most likely run next."""


@dataclass(frozen=True, slots=True)
class Order:
    """One run that is to be made. The identifier exists before anything starts, so that a lost answer can be found again."""

    number: int
    """Position in the study, from 0."""
    row: int
    cap_s: float
    """Seconds after which the run is stopped where it runs; infinite for none."""
    reserved_usd: float
    """The most that this run can be charged; kept free in the budget until it settles. Infinite without a cap."""
    plan: Plan
    boots: bool = True
    """Whether machines are booted for this run (and charged)."""


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
    reason: Reason | None = None
    """Whose fault, when the run failed."""
    detail: str = ""
    """One sentence for people: the exit code, the last line of an error."""
    oracle_s: float | None = None
    """Replay only: the full time that a stopped run would have taken. Live runs cannot know it."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"a run cannot take {self.seconds!r} seconds")
        if not (math.isfinite(self.charged_usd) and self.charged_usd >= 0):
            raise ValueError(f"a run cannot be charged {self.charged_usd!r} dollars")
        if (self.end is End.FAILED) != (self.reason is not None):
            raise ValueError(f"a run that {self.end} has reason {self.reason!r}; failed runs, and only they, have one")


@dataclass(frozen=True, slots=True)
class Told:
    """What the model hears about a run."""

    seconds: float
    """The run's time: measured, estimated, or a lower bound."""
    metrics: Mapping[str, float] = field(default_factory=lambda: _NO_METRICS)
    censored: bool = False
    """The true time is longer than `bound_s`; a model that can, treats it as such and ignores the estimate."""
    bound_s: float = math.nan
    """What really ran, when censored."""


@dataclass(frozen=True, slots=True)
class Observation:
    """An order with its outcome and what the model was told of it (nothing: the row is closed and teaches nothing)."""

    order: Order
    outcome: Outcome
    told: Told | None

    @property
    def row(self) -> int:
        """The configuration that ran."""
        return self.order.row


History = tuple[Observation, ...]


class Because(enum.StrEnum):
    """Why an exploration ends: different news to a user."""

    BUDGET = "budget"
    TRIALS = "trials"
    WALL_CLOCK = "wall clock"
    EXHAUSTED = "exhausted"
    CONVERGED = "converged"
    USER = "user"
    """A person ended it."""
    PAUSED = "paused"
    """Too many runs in a row failed: somebody should look before more money is spent."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """No further run, and why. With runs under way it may be worth asking again when they have settled."""

    because: Because
    reason: str
    """One clause for people."""
