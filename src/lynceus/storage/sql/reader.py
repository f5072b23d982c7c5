"""A study read from a database, and kept up to date: only what changed since the last read is read again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row, select

from lynceus.errors import InfrastructureError, InputError
from lynceus.storage.serialization import limits_of, order_of, outcome_of, reading, target_of
from lynceus.storage.sql.tables import studies, trials
from lynceus.trial.order import UNORDERED
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, Record, RequestedState
from lynceus.trial.stop import Stopped, StopReason

STUDY_COLUMNS = [column for column in studies.columns if column.name not in ("document", "policy")]
"""What changes in a study; the job file, which may be long, is not read again and again."""
_TRIAL_COLUMNS = [
    column
    for column in trials.columns
    if column.name not in ("study_id", "sequence", "params", "lease_s", "lease_clock")
]
"""What a decision needs of a trial; its configuration follows from the row."""


@dataclass(frozen=True)
class Checkpoint:
    """How far a reader had come, to go back to when a transaction fails."""

    sequence: int
    settled: int
    open_runs: dict[int, OpenRun]
    row: Row[Any] | None


@dataclass
class Reader:
    """The rows of one study, in memory. Journals change it together with the database."""

    study_id: int
    name: str
    shown_url: str
    sequence: int = -1
    """The last change that was read."""
    open_runs: dict[int, OpenRun] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    """Numbers of settled trials."""
    held: dict[int, tuple[str | None, int]] = field(default_factory=dict)
    """Worker and epoch of the open runs that our journal looks after, by their numbers."""
    _observations: list[Observation] = field(default_factory=list)
    _study: Row[Any] | None = None
    _identity: str = ""
    _record: Record | None = None

    @property
    def row(self) -> Row[Any]:
        """The study's own row."""
        if self._study is None:
            raise InputError(f"study {self.name!r}: it is no longer in storage {self.shown_url}; it was deleted.")
        return self._study

    @property
    def record(self) -> Record:
        """Everything that is known of the study, as of the last read or write."""
        if self._record is None:
            row = self.row
            with reading(f"study {self.name!r}", self.shown_url):
                self._record = Record(
                    identity=str(row.identity),
                    observations=tuple(self._observations),
                    open_runs=tuple(self._marked(self.open_runs[number]) for number in sorted(self.open_runs)),
                    queue=tuple(map(int, row.queue)),
                    requested_state=RequestedState(row.wish),
                    stopped=None if row.because is None else Stopped(StopReason(row.because), row.reason),
                    resumed_at=int(row.resumed_at),
                    added_usd=float(row.added_usd),
                    added_trials=int(row.added_trials),
                    limit_changes=limits_of(row.limits),
                    active_s=float(row.active_s),
                )
        return self._record

    def taken_over(self, run: OpenRun) -> bool:
        """Whether a run was held by our journal, and is by now another worker's."""
        held = self.held.get(run.order.number)
        return held is not None and held != (run.worker, run.epoch)

    def _marked(self, run: OpenRun) -> OpenRun:
        return replace(run, taken_over=True) if self.taken_over(run) else run

    def read(self, connection: Connection, *, lock: bool = False) -> None:
        """Read what is new; with `lock`, hold the study's row until the transaction ends."""
        wanted = select(*STUDY_COLUMNS).where(studies.c.id == self.study_id)
        study = connection.execute(wanted.with_for_update() if lock else wanted).one_or_none()
        if study is not None and study.identity != (self._identity or study.identity):
            study = None  # SQLite gave the number of a deleted study to a new one
        if study is not None and study.name != self.name:
            raise InputError(f"study {self.name!r}: it is called {study.name!r} now; open it under that name.")
        self.set_row(study)
        self._identity = self.row.identity
        if self.row.sequence == self.sequence:
            return
        # Without the lock, others may have written between the two statements: what is newer is left for the next read.
        changed = connection.execute(
            select(*_TRIAL_COLUMNS)
            .where(trials.c.study_id == self.study_id, trials.c.sequence.between(self.sequence + 1, self.row.sequence))
            .order_by(trials.c.rank.is_(None), trials.c.rank)
        )
        for trial in changed:
            with reading(f"trial {trial.number} of study {self.name!r}", self.shown_url):
                self._add(trial)
        self.sequence = self.row.sequence

    def set_row(self, row: Row[Any] | None) -> None:
        """The study's row has changed."""
        self._study, self._record = row, None

    def set_run(self, run: OpenRun) -> None:
        """An open run is new or has changed."""
        self.open_runs[run.order.number] = run
        self._record = None

    def settle(self, observation: Observation) -> None:
        """A trial has settled."""
        number = observation.order.number
        self.open_runs.pop(number, None)
        self._observations.append(observation)
        self.settled.add(number)
        self._record = None

    def checkpoint(self) -> Checkpoint:
        """Where to go back to."""
        return Checkpoint(self.sequence, len(self._observations), dict(self.open_runs), self._study)

    def go_back(self, to: Checkpoint) -> None:
        """Forget what was written since, because the transaction failed; after a success nothing changes."""
        if len(self._observations) != to.settled:
            self.settled -= {seen.order.number for seen in self._observations[to.settled :]}
            del self._observations[to.settled :]
        self.sequence, self.open_runs = to.sequence, to.open_runs
        self.set_row(to.row)

    def _add(self, trial: Row[Any]) -> None:
        known = self.open_runs.get(trial.number)
        if trial.rank is None:
            moments = (trial.ordered_s, trial.launched_s, trial.heartbeat_s)
            order = order_of(trial.ordered)
            self.set_run(OpenRun(order, trial.ticket, trial.worker, *moments, bool(trial.unwanted), trial.epoch))
            return
        if trial.rank != len(self._observations):
            raise InfrastructureError(
                f"study {self.name!r} in {self.shown_url}: trial {trial.number} has rank {trial.rank} where "
                f"{len(self._observations)} was expected; the storage was changed by something else than Lynceus, "
                "restore it from a backup."
            )
        order = order_of(trial.ordered) if known is None else known.order
        imported = order.plan.purpose in UNORDERED
        started_s = None if imported else float(trial.launched_s or trial.ordered_s)
        ended_s = None if imported or trial.settled_s is None else float(trial.settled_s)
        self.settle(Observation(order, outcome_of(trial.outcome), target_of(trial.told), started_s, ended_s))
