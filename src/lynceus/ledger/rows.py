"""What a storage hands out: studies, trials and lines of the journal as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from lynceus.history import Because, Order, Outcome, Stopped, Told
from lynceus.ledger.ledger import Wish
from lynceus.ledger.records import order_of, outcome_of, told_of


@dataclass(frozen=True)
class StudyRecord:
    """What a storage knows of a study besides its trials."""

    id: int
    name: str
    created_s: float
    """Seconds since the epoch."""
    document: Mapping[str, Any]
    """The job file; secrets only by name."""
    fingerprint: str
    """Of the problem: see `fingerprint`."""
    policy: Mapping[str, Any]
    seed: int
    wish: Wish
    stopped: Stopped | None
    """Why it is over or paused."""
    added_usd: float
    active_s: float
    seen_s: float
    """When a worker was last there."""
    trials: int
    """How many were ordered, open ones included."""
    settled: int
    identity: str
    """Tells it apart from a deleted study of the same name."""
    sequence: int
    """Grows with every change."""

    @property
    def state(self) -> str:
        """`RUNNING`, `PAUSED`, `STOPPED` (by a person) or `FINISHED`."""
        if self.stopped is None:
            return "RUNNING"
        return {Because.PAUSED: "PAUSED", Because.USER: "STOPPED"}.get(self.stopped.because, "FINISHED")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal."""

    at_s: float
    kind: str
    number: int | None
    worker: str | None
    detail: Mapping[str, Any] | None


@dataclass(frozen=True)
class TrialRecord:
    """A trial with everything that was written down about it."""

    number: int
    params: Mapping[str, Any]
    order: Order
    outcome: Outcome | None
    """Nothing while it is open."""
    told: Told | None
    rank: int | None
    """Position in the history."""
    ticket: str | None
    """For local runs: the directory with its files."""
    worker: str | None
    ordered_s: float
    """Moments are seconds since the epoch."""
    launched_s: float | None
    heartbeat_s: float | None
    settled_s: float | None
    unwanted: bool
    """A person wants it to end."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a study has come: who has seen the same numbers has seen everything but heartbeats."""

    study: str
    identity: str
    sequence: int
    settled: int


def study_record(row: Row[Any]) -> StudyRecord:
    """A study from its row, with the number of its trials."""
    stopped = None if row.because is None else Stopped(Because(row.because), row.reason)
    return StudyRecord(
        row.id,
        row.name,
        row.created_s,
        row.document,
        row.fingerprint,
        row.policy,
        row.seed,
        Wish(row.wish),
        stopped,
        row.added_usd,
        row.active_s,
        row.seen_s,
        row.trials or 0,
        row.settled,
        row.identity,
        row.sequence,
    )


def trial_record(row: Row[Any]) -> TrialRecord:
    """A trial from its row."""
    return TrialRecord(
        row.number,
        row.params,
        order_of(row.ordered),
        None if row.outcome is None else outcome_of(row.outcome),
        told_of(row.told),
        row.rank,
        row.ticket,
        row.worker,
        row.ordered_s,
        row.launched_s,
        row.heartbeat_s,
        row.settled_s,
        bool(row.unwanted),
    )
