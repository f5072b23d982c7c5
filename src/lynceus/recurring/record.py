"""Everything that is written down about a recurring job: its versions, its runs, what was changed and why. Frozen values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lynceus.recurring.settings import Settings
from lynceus.space.column import Scalar
from lynceus.trial.outcome import End, FailureReason

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Basis:
    """What was known when a version was chosen. Only if it changes is there a reason to look again."""

    size: float | None = None
    """The size of the input for which it was chosen."""
    usd_per_hour: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """Prices by row of the space: those of the chosen configuration and of its best alternatives."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"size": self.size, "usd_per_hour": {str(row): price for row, price in self.usd_per_hour.items()}}

    @classmethod
    def of_record(cls, record: Mapping[str, Any] | None) -> Basis:
        """The basis of a record; an empty one where there is none."""
        record = record or {}
        return cls(
            record.get("size"), {int(row): float(price) for row, price in record.get("usd_per_hour", {}).items()}
        )


@dataclass(frozen=True, slots=True)
class Version:
    """A configuration of the job. Versions never change; a canary's configuration is one too, adopted or not."""

    number: int
    """From 1."""
    params: Mapping[str, Scalar]
    at_s: float
    """When it was created, seconds since the epoch."""
    by: str = ""
    """Who or what created it."""
    reason: str = ""
    source: str = "adopt"
    """`adopt`, `canary`, `rollback`, `retune` or `reprice`."""
    evidence: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    expected: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """What was expected of it (see `Effect`)."""
    basis: Basis = field(default_factory=Basis)
    adopted_s: float | None = None
    """When it became the production configuration; None: it was only tried."""


@dataclass(frozen=True, slots=True)
class ProductionRun:
    """One run of the job."""

    run_id: str
    version: int
    """The number of the version that ran."""
    seconds: float
    """How long the job ran; of a failed or stopped run, until it ended."""
    ended_s: float
    """When it ended, seconds since the epoch."""
    size: float | None = None
    """Size of its input, in any unit that stays the same; None when it is not known."""
    cost_usd: float | None = None
    price_usd_per_hour: float | None = None
    """The price of its configuration when it ran."""
    started_s: float | None = None
    end: End = End.FINISHED
    reason: FailureReason | None = None
    """Whose fault, when it failed."""
    canary: bool = False
    timeout_s: float = math.inf
    """When it would have been stopped: only canaries are."""
    instead_usd: float | None = None
    """Of a canary: what the adopted configuration was expected to cost instead."""
    detail: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"a run cannot take {self.seconds!r} seconds")
        if self.size is not None and not (math.isfinite(self.size) and self.size > 0):
            raise ValueError(f"an input cannot have the size {self.size!r}")
        if (self.end is End.FAILED) != (self.reason is not None):
            raise ValueError(f"a run that {self.end} has reason {self.reason!r}; failed runs, and only they, have one")

    @property
    def informs(self) -> bool:
        """Whether it tells how long the job takes; runs that failed do not."""
        return self.end is End.FINISHED and self.seconds > 0

    @property
    def at_fault(self) -> bool:
        """Whether the configuration is to blame for how it ended; failures of the infrastructure blame nothing."""
        return self.end is End.TIMEOUT or (self.reason is not None and self.reason.blames_configuration)


@dataclass(frozen=True, slots=True)
class StudyRun:
    """A trial of a study of this job: what is known beside production runs."""

    params: Mapping[str, Scalar]
    seconds: float
    end: End
    reason: FailureReason | None = None
    size: float | None = None
    ended_s: float = 0.0
    cost_usd: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class OpenCanary:
    """A canary that runs now."""

    version: int
    run_id: str
    since_s: float
    reserved_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the audit log: something that was decided, by Lynceus or by a user."""

    at_s: float
    kind: str
    """An `ActionKind`, or `settings`, `hold`, `rollback`."""
    version: int | None = None
    """The version that it concerns: that of the canary, or the one that became current."""
    after_runs: int = 0
    """Runs in the record when it was decided."""
    by: str = ""
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    expected: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    cost_usd: float = 0.0
    """Dollars spent on it beside production runs: those of a search."""


@dataclass(frozen=True)
class JobRecord:
    """A recurring job as it is written down. It never changes: a newer record replaces it."""

    name: str
    settings: Settings = field(default_factory=Settings)
    versions: tuple[Version, ...] = ()
    runs: tuple[ProductionRun, ...] = ()
    """In the order in which they ended."""
    current: int | None = None
    """The number of the adopted version; None while there is none."""
    open_canary: OpenCanary | None = None
    changes: tuple[Change, ...] = ()
    """Oldest first."""
    trials: tuple[StudyRun, ...] = ()
    """Trials of studies of this job."""
    identity: str = ""

    def version(self, number: int) -> Version:
        """The version with a number."""
        for one in self.versions:
            if one.number == number:
                return one
        raise KeyError(number)

    def tried_by(self, run_id: str) -> Version | None:
        """The version that a run tries or tried as a canary; None if it was none."""
        tried = [one for one in self.versions if one.source == "canary" and one.evidence.get("run") == run_id]
        return tried[-1] if tried else None

    @property
    def adopted(self) -> Version | None:
        """The production configuration."""
        return None if self.current is None else self.version(self.current)

    def of_params(self, params: Mapping[str, Scalar]) -> tuple[int, ...]:
        """The numbers of all versions with this configuration."""
        return tuple(one.number for one in self.versions if dict(one.params) == dict(params))
