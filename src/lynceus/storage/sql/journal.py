"""The journal of a study in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, insert, select, update

from lynceus.storage.forks import renew_after_fork
from lynceus.storage.serialization import limits_record, order_record, storable
from lynceus.storage.sql.address import Address
from lynceus.storage.sql.clock import StorageClock
from lynceus.storage.sql.leases import LOST_AFTER_S, Leases
from lynceus.storage.sql.reader import STUDY_COLUMNS, Reader
from lynceus.storage.sql.rows import settled_values
from lynceus.storage.sql.shared_budgets import shared_budgets
from lynceus.storage.sql.tables import events, studies, trials
from lynceus.storage.sql.transaction import database_errors, writing
from lynceus.storage.worker import myself
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, Record, RequestedState
from lynceus.trial.shared_budget import Payer, SharedBudget
from lynceus.trial.stop import Stopped

LONGEST_GAP_S = 60.0
"""A longer silence between two heartbeats is a pause and does not count as time worked."""


class SqlJournal:
    """See `lynceus.storage.journal.Journal`. Reads only what changed since the last read; writes under the study's lock.

    Several threads may use one journal. A forked child may, too: it is another worker, with connections of its own.
    """

    def __init__(
        self,
        engine: Engine,
        study_id: int,
        name: str,
        address: Address,
        clock: StorageClock,
        lease_s: float = LOST_AFTER_S,
    ) -> None:
        self._engine, self._address, self.study_id = engine, address, study_id
        self._clock, self._leases = clock, Leases(study_id, clock, lease_s)
        self._reader = Reader(study_id, name, address.shown)
        self.shared_budgets = self._shared_budgets
        """See `lynceus.storage.journal.Journal`."""
        self._begin()
        renew_after_fork(self, SqlJournal._begin, lambda journal: journal._lock)
        self.refresh()

    def _begin(self) -> None:
        """Begin as a worker of this process: locks, leases and a transaction of the parent stay with the parent."""
        self.worker = myself()
        """Who writes."""
        self._lock = threading.RLock()
        self._writer: int | None = None
        """The thread inside `exclusive()`; others see what was committed before."""
        self._connection: Connection | None = None
        self._told_s, self._told_at = 0.0, 0.0
        self._events: list[Mapping[str, object]] = []
        self._reader.held.clear()

    @property
    def record(self) -> Record:
        """Everything written down so far, as of the last read or write."""
        return self._reader.record if self._writer == threading.get_ident() else self._committed

    def refresh(self) -> None:
        """Read what other processes have written since."""
        reader = self._reader
        with self._lock:
            if self._connection is not None:
                if reader.row.sequence != reader.sequence:  # otherwise nothing is new: we hold the lock
                    reader.read(self._connection)
                return
            before = reader.checkpoint()
            with self._errors(), self._engine.connect() as connection:
                try:
                    reader.read(connection)
                    self._committed = reader.record
                except BaseException:
                    reader.go_back(before)
                    raise

    @contextmanager
    def exclusive(self, worker: str | None = None) -> Iterator[Connection]:
        """The study's lock and one transaction: SQLite's write lock, or a row lock in PostgreSQL.

        `worker` writes in place of this process: a server acts for its clients.
        """
        with self._lock:
            own, self.worker = self.worker, worker or self.worker
            try:
                if self._connection is not None:
                    yield self._connection
                else:
                    with self._locked() as connection:
                        yield connection
            finally:
                self.worker = own

    @contextmanager
    def _locked(self) -> Iterator[Connection]:
        reader = self._reader
        before = reader.checkpoint()
        try:
            with self._errors():
                with writing(self._engine) as connection:
                    self._connection, self._writer = connection, threading.get_ident()
                    reader.read(connection, lock=True)
                    before = reader.checkpoint()
                    self._told_s, self._told_at = self._clock.now(connection), time.monotonic()
                    yield connection
                    if self._events:
                        self._execute(insert(events), self._events)
                before = reader.checkpoint()
        finally:
            self._connection = self._writer = None
            self._events.clear()
            reader.go_back(before)
            self._committed = reader.record

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """A run will be made."""
        with self.exclusive():
            now = self._now()
            self._execute(
                insert(trials).values(
                    study_id=self.study_id,
                    number=order.number,
                    sequence=self._next(),
                    params=dict(params),
                    ordered=order_record(order),
                    worker=self.worker,
                    ordered_s=now,
                    **self._leases.renewed(now),
                )
            )
            self._note("ordered", order.number)
            self._hold(OpenRun(order, None, self.worker, now))

    def launched(self, number: int, ticket: str) -> bool:
        """The run was started; the ticket finds it again. False, and nothing changes, when another worker looks after it."""
        with self.exclusive():
            run = self._reader.open_runs.get(number)
            if run is None or self._fenced(run):
                return False  # another worker took us for dead
            now = self._now()
            ticket = storable(ticket)
            lease = self._leases.renewed(now)
            self._change(number, {"ticket": ticket, "launched_s": now, "heartbeat_s": now, **lease})
            self._note("launched", number, {"ticket": ticket})
            self._set_run(replace(run, ticket=ticket, launched_s=now, heartbeat_s=now))
        return True

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """A worker still looks after these runs: renews their leases, but for those that others took over. Reads what is new, too."""
        with self.exclusive():
            now = self._now()
            runs = self._reader.open_runs
            if mine := [number for number in numbers if number in runs and not self._fenced(runs[number])]:
                still = trials.c.study_id == self.study_id, trials.c.number.in_(mine), trials.c.rank.is_(None)
                lease = self._leases.renewed(now)
                self._execute(update(trials).where(*still).values(heartbeat_s=now, **lease))
                for number in mine:
                    self._reader.set_run(replace(runs[number], heartbeat_s=now))
            self._set_study(**self._worked(now))

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """The run ended; False, and nothing changes, when that is known already, or another worker looks after it."""
        number, reader = observation.order.number, self._reader
        with self.exclusive():
            if number in reader.settled:
                return False
            if (run := reader.open_runs.get(number)) is None:
                self.imported([observation], [params])
                return True
            if self._fenced(run):
                return False
            now, rank = self._now(), reader.row.settled
            self._change(number, settled_values(observation, rank, now), settled=rank + 1, **self._worked(now))
            self._note("settled", number, {"end": str(observation.outcome.end)})
            self._reader.held.pop(number, None)
            reader.settle(replace(observation, started_s=run.launched_s or run.ordered_s, ended_s=now))
            reader.sequence = reader.row.sequence
        return True

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Measurements from elsewhere, which were never ordered: one change, however many they are."""
        if not observations:
            return
        reader = self._reader
        with self.exclusive():
            now, first = self._now(), reader.row.settled
            common = {
                "study_id": self.study_id,
                "sequence": self._next(settled=first + len(observations), **self._worked(now)),
                "ordered_s": now,
            }
            rows = [
                {
                    **common,
                    "number": seen.order.number,
                    "params": dict(point),
                    "ordered": order_record(seen.order),
                    **settled_values(seen, rank, now),
                }
                for rank, (seen, point) in enumerate(zip(observations, params, strict=True), first)
            ]
            self._execute(insert(trials), rows)
            self._note("imported", observations[0].order.number, {"trials": len(observations)})
            for seen in observations:
                reader.settle(seen)
            reader.sequence = reader.row.sequence

    def closed(self, stopped: Stopped, requested: RequestedState | None = None) -> None:
        """The study is over or paused; `requested` says what workers should do with open runs."""
        with self.exclusive():
            if self.record.stopped != stopped:
                self._change_study(because=str(stopped.kind), reason=storable(stopped.reason))
                self._note("closed", None, {"because": str(stopped.kind), "reason": stopped.reason})
            if requested is not None:
                self._change_study(wish=str(requested))
                self._note("wished", None, {"wish": str(requested)})

    def resumed(self, add_usd: float = 0.0, limits: LimitChange | None = None, add_trials: int = 0) -> None:
        """The study goes on, perhaps with more money or trials, or under other constraints."""
        with self.exclusive():
            record = self.record
            changed = {} if limits is None else {"limits": limits_record((*record.limit_changes, limits))}
            self._change_study(
                because=None,
                reason=None,
                wish=str(RequestedState.RUN),
                resumed_at=len(record.observations),
                added_usd=record.added_usd + add_usd,
                added_trials=record.added_trials + add_trials,
                **changed,
            )
            added = {"added_usd": add_usd, "added_trials": add_trials}
            self._note("resumed", None, {name: count for name, count in added.items() if count} or None)
            if limits is not None:
                before, after = [str(each) for each in limits.before], [str(each) for each in limits.after]
                self._note("limited", None, {"before": before, "after": after})

    def request_cancel(self, number: int) -> None:
        """The user wants this open run to end."""
        with self.exclusive():
            run = self._reader.open_runs.get(number)
            if run is None or run.cancel_requested:
                return
            self._change(number, {"unwanted": True})
            self._note("unwanted", number)
            self._set_run(replace(run, cancel_requested=True))

    def enqueued(self, rows: Sequence[int]) -> None:
        """The whole queue, replaced."""
        with self.exclusive():
            if len(rows) > len(self.record.queue):
                self._note("enqueued", None, {"row": rows[-1]})
            self._change_study(queue=list(rows))

    def announced(self, event: str) -> bool:
        """The user is notified of an event; of several workers, one does it."""
        with self.exclusive():
            known = self._execute(
                select(events.c.detail).where(events.c.study_id == self.study_id, events.c.kind == "announced")
            ).scalars()
            if any(detail["occasion"] == event for detail in known):
                return False
            self._note("announced", None, {"occasion": event})
        return True

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over open runs that no worker looks after; returns them with those that are ours already."""
        with self.exclusive() as connection:
            for run in self.record.open_runs:
                now = self._now()
                if run.worker == self.worker or not self._leases.abandoned(connection, run, now):
                    continue
                lease = self._leases.renewed(now)
                self._change(run.order.number, {"worker": self.worker, "epoch": run.epoch + 1, **lease})
                self._note("adopted", run.order.number, {"from": run.worker})
                self._hold(replace(run, worker=self.worker, epoch=run.epoch + 1))
        return tuple(run for run in self.record.open_runs if run.worker == self.worker)

    def release(self) -> None:
        """Give up our open runs; the events tell that we left."""
        with self.exclusive():
            for run in self.record.open_runs:
                if run.worker == self.worker:
                    self._change(run.order.number, {"worker": None, "lease_s": None, "lease_clock": None})
                    self._reader.held.pop(run.order.number, None)
            self._note("released", None)
            self._next()  # also when nothing was open: readers should notice
            self.refresh()

    def _shared_budgets(self) -> tuple[SharedBudget, ...]:
        row = self._reader.row
        payer = Payer(row.project, row.owner)
        if not payer.accounts:
            return ()
        if self._connection is not None and self._writer == threading.get_ident():
            return shared_budgets(self._connection, payer, self._now(), hold=True)
        with self._errors(), self._engine.connect() as connection:
            return shared_budgets(connection, payer, self._clock.now(connection))

    def _abandoned(self) -> tuple[int, ...]:
        with self._errors(), self._engine.connect() as connection:
            now, runs = self._clock.now(connection), self.record.open_runs
            return tuple(run.order.number for run in runs if self._leases.abandoned(connection, run, now))

    def _fenced(self, run: OpenRun) -> bool:
        """Whether another worker looks after a run: it took it over from us, or from the one on whose behalf we were told."""
        if run.order.number in self._reader.held:
            return self._reader.taken_over(run)
        return run.epoch > 0 and run.worker not in (None, self.worker)

    def _hold(self, run: OpenRun) -> None:
        self._reader.held[run.order.number] = (run.worker, run.epoch)
        self._set_run(run)

    # Small writes, all inside the lock.

    def _next(self, **values: object) -> int:
        """The number of the next change; other values of the study are written with it."""
        sequence = self._reader.row.sequence + 1
        self._set_study(sequence=sequence, **values)
        return int(sequence)

    def _change(self, number: int, values: Mapping[str, object], **of_study: object) -> None:
        mine = trials.c.study_id == self.study_id, trials.c.number == number
        self._execute(update(trials).where(*mine).values(sequence=self._next(**of_study), **values))

    def _change_study(self, **values: object) -> None:
        self._next(**values)
        self._reader.sequence = self._reader.row.sequence

    def _set_study(self, **values: object) -> None:
        mine = studies.c.id == self.study_id
        row = self._execute(update(studies).where(mine).values(**values).returning(*STUDY_COLUMNS))
        self._reader.set_row(row.one())

    def _set_run(self, run: OpenRun) -> None:
        self._reader.set_run(run)
        self._reader.sequence = self._reader.row.sequence

    def _worked(self, now: float) -> dict[str, float]:
        row = self._reader.row
        gap = now - row.seen_s
        return {"active_s": row.active_s + (gap if 0 < gap <= LONGEST_GAP_S else 0.0), "seen_s": now}

    def _now(self) -> float:
        """The storage's time inside the lock: as it told at the beginning, and what has passed here since."""
        given = self._clock.given
        return self._told_s + time.monotonic() - self._told_at if given is None else given()

    def _note(self, kind: str, number: int | None, detail: Mapping[str, object] | None = None) -> None:
        """An event; all events of a transaction are written together at its end."""
        self._events.append(
            {
                "study_id": self.study_id,
                "at_s": self._now(),
                "kind": kind,
                "number": number,
                "worker": self.worker,
                "detail": None if detail is None else dict(detail),
            }
        )

    def _execute(self, statement: Any, rows: Sequence[Mapping[str, object]] | None = None) -> Any:
        if self._connection is None:
            raise RuntimeError("a journal is written inside exclusive()")
        return self._connection.execute(statement, rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        advice = f"nothing that was settled is lost, repair it and run: lynceus resume {self._reader.name}"
        with database_errors(self._address, advice):
            yield


def abandoned_runs(journal: SqlJournal) -> tuple[int, ...]:
    """Numbers of the open runs that `adopt` would take over now."""
    journal.refresh()
    return journal._abandoned()
