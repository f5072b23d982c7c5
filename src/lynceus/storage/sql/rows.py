"""Rows of a storage as values: studies, trials, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row

from lynceus.storage.serialization import (
    DamagedRecordError,
    limits_of,
    order_of,
    outcome_of,
    outcome_record,
    reading,
    target_of,
    target_record,
)
from lynceus.storage.sql.address import without_credentials
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation, Outcome, TrainingTarget
from lynceus.trial.record import RequestedState
from lynceus.trial.shared_budget import Payer
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
    limit_changes: tuple[LimitChange, ...] = ()
    """Every change of the constraints since it began, oldest first."""
    added_trials: int = 0
    payer: Payer = field(default_factory=Payer)
    """On whose budgets its runs draw."""
    damage: str | None = None
    """What makes the row unreadable, as a sentence; the other fields then hold what could be read."""

    @property
    def state(self) -> str:
        """`RUNNING`, `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
        return "RUNNING" if self.stopped is None else self.stopped.study_state

    @property
    def has_command(self) -> bool:
        """Whether workers can run its trials; otherwise a program does, by ask and tell."""
        job = self.document.get("job") or {}
        return bool(job.get("run") or job.get("serve"))


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
    epoch: int = 0
    """How often another worker took it over."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a study has come: equal cursors mean that nothing but heartbeats has changed."""

    study: str
    identity: str
    sequence: int
    settled: int


def study_record(row: Row[Any], shown_url: str) -> StudyRecord:
    """A study from its row, with the number of its trials. A damaged row is told of in the record: other studies stay readable."""
    name = str(row.name)
    try:
        with reading(f"study {name!r}", shown_url):
            return _study_record(row)
    except DamagedRecordError as error:
        zeros = (0.0, 0.0, 0.0, 0, 0)  # money, moments and counts
        state = RequestedState.STOP
        return StudyRecord(
            row.id, name, 0.0, {}, "", {}, 0, state, None, *zeros, str(row.identity), -1, damage=str(error)
        )


def _study_record(row: Row[Any]) -> StudyRecord:
    stopped = None if row.because is None else Stopped(StopReason(row.because), str(row.reason))
    for facts in (row.document, row.policy):
        if not isinstance(facts, dict):
            raise TypeError("its document is not a JSON object")
    return StudyRecord(
        row.id,
        row.name,
        float(row.created_s),
        without_credentials(row.document),
        row.fingerprint,
        row.policy,
        int(row.seed),
        RequestedState(row.wish),
        stopped,
        float(row.added_usd),
        float(row.active_s),
        float(row.seen_s),
        row.trials or 0,
        int(row.settled),
        row.identity,
        int(row.sequence),
        limits_of(row.limits),
        int(row.added_trials),
        Payer(row.project, row.owner),
    )


def trial_record(row: Row[Any], study: str, shown_url: str) -> TrialRecord:
    """A trial from its row."""
    with reading(f"trial {row.number} of study {study!r}", shown_url):
        launched_s, heartbeat_s, settled_s = map(_moment, (row.launched_s, row.heartbeat_s, row.settled_s))
        return TrialRecord(
            row.number,
            dict(row.params),
            order_of(row.ordered),
            None if row.outcome is None else outcome_of(row.outcome),
            target_of(row.told),
            row.rank,
            row.ticket,
            row.worker,
            float(row.ordered_s),
            launched_s,
            heartbeat_s,
            settled_s,
            bool(row.unwanted),
            row.epoch,
        )


def _moment(value: Any) -> float | None:
    return None if value is None else float(value)


def settled_values(seen: Observation, rank: int, now: float) -> dict[str, object]:
    """What is written of a trial when it settles."""
    return {
        "rank": rank,
        "outcome": outcome_record(seen.outcome),
        "told": target_record(seen.target),
        "settled_s": now,
    }
