"""Rows of a storage as values: studies, trials, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from lynceus.storage.serialization import order_of, outcome_of, target_of
from lynceus.trial.order import Order
from lynceus.trial.outcome import Outcome, TrainingTarget
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import Stopped, StopReason


@dataclass(frozen=True)
class StudyRecord:
    """A study without its trials."""

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
    requested_state: RequestedState
    stopped: Stopped | None
    """Why it is over or paused."""
    added_usd: float
    active_s: float
    seen_s: float
    """When a worker was last active."""
    trials: int
    """How many were ordered, open ones included."""
    settled: int
    identity: str
    """Tells it apart from a deleted study of the same name."""
    sequence: int
    """Grows with every change."""

    @property
    def state(self) -> str:
        """`RUNNING`, `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
        return "RUNNING" if self.stopped is None else self.stopped.study_state


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a study."""

    at_s: float
    kind: str
    number: int | None
    worker: str | None
    detail: Mapping[str, Any] | None


@dataclass(frozen=True)
class TrialRecord:
    """Everything that is stored of a trial."""

    number: int
    params: Mapping[str, Any]
    order: Order
    outcome: Outcome | None
    """None while it is open."""
    target: TrainingTarget | None
    rank: int | None
    """Order of settling; None while it is open."""
    ticket: str | None
    """For local runs: the directory with its files."""
    worker: str | None
    ordered_s: float
    """Moments are seconds since the epoch."""
    launched_s: float | None
    heartbeat_s: float | None
    settled_s: float | None
    cancel_requested: bool
    """The user wants it to end."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a study has come: equal cursors mean that nothing but heartbeats has changed."""

    study: str
    identity: str
    sequence: int
    settled: int


def study_record(row: Row[Any]) -> StudyRecord:
    """A study from its row, with the number of its trials."""
    stopped = None if row.because is None else Stopped(StopReason(row.because), row.reason)
    return StudyRecord(
        row.id,
        row.name,
        row.created_s,
        row.document,
        row.fingerprint,
        row.policy,
        row.seed,
        RequestedState(row.wish),
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
        target_of(row.told),
        row.rank,
        row.ticket,
        row.worker,
        row.ordered_s,
        row.launched_s,
        row.heartbeat_s,
        row.settled_s,
        bool(row.unwanted),
    )
