"""The journal of a study in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from lynceus.errors import InfrastructureError
from lynceus.storage.serialization import order_record, outcome_record, target_record
from lynceus.storage.sql.reader import STUDY_COLUMNS, Reader
from lynceus.storage.sql.tables import events, studies, trials
from lynceus.storage.worker import lives, myself
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, Record, RequestedState
from lynceus.trial.stop import Stopped

LONGEST_GAP_S = 60.0
"""A longer silence between two heartbeats is a pause and does not count as time worked."""
LOST_AFTER_S = 900.0
"""A run on another host is lost when its worker has been silent for so long."""


class SqlJournal:
    """See `lynceus.storage.journal.Journal`. Reads only what changed since the last read; writes under the study's lock."""

    def __init__(
        self, engine: Engine, study_id: int, name: str, shown_url: str, now: Callable[[], float] = time.time
    ) -> None:
        self._engine, self._now, self.study_id = engine, now, study_id
        self.worker = myself()
        """Who writes."""
        self._reader = Reader(study_id, name, shown_url)
        self._connection: Connection | None = None
        self._events: list[Mapping[str, object]] = []
        self.refresh()

    @property
    def record(self) -> Record:
        """Everything written down so far, as of the last read or write."""
        return self._reader.record

    def refresh(self) -> None:
        """Read what other processes have written since."""
        if self._connection is not None:
            if self._reader.row.sequence != self._reader.sequence:  # otherwise nothing is new: we hold the lock
                self._reader.read(self._connection)
            return
        with self._errors(), self._engine.connect() as connection:
            self._reader.read(connection)

    @contextmanager
    def exclusive(self, worker: str | None = None) -> Iterator[Connection]:
        """The study's lock and one transaction: SQLite's write lock, or a row lock in PostgreSQL.

        `worker` writes in place of this process: a server acts for its clients.
        """
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
            with self._errors(), self._engine.connect().execution_options(writing=True) as connection:
                with connection.begin():
                    self._connection = connection
                    reader.read(connection, lock=True)
                    before = reader.checkpoint()
                    yield connection
                    if self._events:
                        self._execute(insert(events), self._events)
                before = reader.checkpoint()
        finally:
            self._connection = None
            self._events.clear()
            reader.go_back(before)

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """A run will be made."""
        now = self._now()
        with self.exclusive():
            self._execute(
                insert(trials).values(
                    study_id=self.study_id,
                    number=order.number,
                    sequence=self._next(),
                    params=dict(params),
                    ordered=order_record(order),
                    worker=self.worker,
                    ordered_s=now,
                )
            )
            self._note("ordered", order.number)
            self._set_run(OpenRun(order, None, self.worker, now))

    def launched(self, number: int, ticket: str) -> None:
        """The run was started; the ticket finds it again."""
        now = self._now()
        with self.exclusive():
            run = self._reader.open_runs.get(number)
            if run is None:
                return  # another worker took us for dead and has settled it
            self._change(number, {"ticket": ticket, "launched_s": now, "heartbeat_s": now})
            self._note("launched", number, {"ticket": ticket})
            self._set_run(replace(run, ticket=ticket, launched_s=now, heartbeat_s=now))

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """A worker still looks after these runs. Reads what is new, too."""
        with self.exclusive():
            now = self._now()
            if numbers:
                mine = trials.c.study_id == self.study_id, trials.c.number.in_(numbers), trials.c.rank.is_(None)
                self._execute(update(trials).where(*mine).values(heartbeat_s=now))
            self._set_study(**self._worked(now))

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """The run ended; False, and nothing changes, when that is known already."""
        number, reader = observation.order.number, self._reader
        with self.exclusive():
            if number in reader.settled:
                return False
            if number not in reader.open_runs:
                self.imported([observation], [params])
                return True
            now, rank = self._now(), reader.row.settled
            self._change(number, _settled_values(observation, rank, now), settled=rank + 1, **self._worked(now))
            self._note("settled", number, {"end": str(observation.outcome.end)})
            reader.settle(observation)
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
                    **_settled_values(seen, rank, now),
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
                self._change_study(because=str(stopped.kind), reason=stopped.reason)
                self._note("closed", None, {"because": str(stopped.kind), "reason": stopped.reason})
            if requested is not None:
                self._change_study(wish=str(requested))
                self._note("wished", None, {"wish": str(requested)})

    def resumed(self, add_usd: float = 0.0) -> None:
        """The study goes on, perhaps with more money."""
        with self.exclusive():
            record = self.record
            self._change_study(
                because=None,
                reason=None,
                wish=str(RequestedState.RUN),
                resumed_at=len(record.observations),
                added_usd=record.added_usd + add_usd,
            )
            self._note("resumed", None, {"added_usd": add_usd} if add_usd else None)

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
        with self.exclusive():
            for run in self.record.open_runs:
                if run.worker != self.worker and self._abandoned(run):
                    self._change(run.order.number, {"worker": self.worker})
                    self._note("adopted", run.order.number, {"from": run.worker})
            self.refresh()
        return tuple(run for run in self.record.open_runs if run.worker == self.worker)

    def release(self) -> None:
        """Give up our open runs; the events tell that we left."""
        with self.exclusive():
            for run in self.record.open_runs:
                if run.worker == self.worker:
                    self._change(run.order.number, {"worker": None})
            self._note("released", None)
            self._next()  # also when nothing was open: readers should notice
            self.refresh()

    def _abandoned(self, run: OpenRun) -> bool:
        if run.worker is None:
            return True
        alive = lives(run.worker)
        if alive is not None:
            return not alive
        # Another host: only the time of its last heartbeat can be seen. Heartbeats change no sequence, so read it.
        latest = self._execute(
            select(func.max(trials.c.heartbeat_s)).where(
                trials.c.study_id == self.study_id, trials.c.number == run.order.number
            )
        ).scalar()
        return self._now() - (latest or run.ordered_s) > LOST_AFTER_S

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
        try:
            yield
        except DBAPIError as error:
            raise InfrastructureError(
                f"storage {self._reader.shown_url}: {one_line(error)}; nothing that was settled is lost, repair it and run: "
                f"lynceus resume {self._reader.name}."
            ) from error


def _settled_values(seen: Observation, rank: int, now: float) -> dict[str, object]:
    """What is written of a trial when it settles."""
    return {
        "rank": rank,
        "outcome": outcome_record(seen.outcome),
        "told": target_record(seen.target),
        "settled_s": now,
    }


def one_line(error: DBAPIError) -> str:
    """What the database said, in one line."""
    return " ".join(str(error.orig).split()) or type(error.orig).__name__
