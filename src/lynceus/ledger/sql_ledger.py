"""A study's ledger in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from lynceus.errors import InfrastructureError, InputError
from lynceus.history import Because, History, Observation, Order, Stopped
from lynceus.ledger.answers import Answer, Once, given_answers, keep_answers
from lynceus.ledger.ledger import OpenRun, Wish
from lynceus.ledger.records import order_of, order_record, outcome_of, outcome_record, told_of, told_record
from lynceus.ledger.schema import events, studies, trials
from lynceus.ledger.worker import lives, myself

_STATE = [column for column in studies.columns if column.name not in ("document", "policy")]
"""What changes in a study; the job file, which may be long, is not read again and again."""
_FACTS = [column for column in trials.columns if column.name not in ("study_id", "sequence", "params", "settled_s")]
"""What a ledger reads of a trial; its configuration follows from the row."""
LONGEST_GAP_S = 60.0
"""A longer silence between two signs of life is a pause and does not count as time worked."""
LOST_AFTER_S = 900.0
"""A run on another host is lost when its worker has been silent for so long."""


class SqlLedger:
    """See `Ledger`. Reads only what changed since it last looked; writes under the study's lock."""

    def __init__(
        self, engine: Engine, study_id: int, name: str, shown_url: str, now: Callable[[], float] = time.time
    ) -> None:
        self._engine, self._id, self._name, self._url, self._now = engine, study_id, name, shown_url, now
        self.worker = myself()
        self._connection: Connection | None = None
        self._sequence = -1
        self._history: list[Observation] = []
        self._frozen: History | None = ()
        self._settled: set[int] = set()
        self._open: dict[int, OpenRun] = {}
        self._study: Row[Any] | None = None
        self._identity = ""
        self._notes: list[Mapping[str, object]] = []
        self.refresh()

    # What is known -----------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """Tells this study apart from a deleted one of the same name."""
        return str(self._row.identity)

    @property
    def history(self) -> History:
        """Settled runs in the order in which they settled, as of the last look."""
        if self._frozen is None:
            self._frozen = tuple(self._history)
        return self._frozen

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that have not settled."""
        return tuple(run.order for run in self.open_runs)

    @property
    def open_runs(self) -> tuple[OpenRun, ...]:
        """The same with ticket, worker and times."""
        return tuple(self._open[number] for number in sorted(self._open))

    @property
    def started(self) -> int:
        """How many runs were ordered or imported."""
        return len(self._history) + len(self._open)

    @property
    def queue(self) -> tuple[int, ...]:
        """Rows that a person wants to be run next."""
        return tuple(self._row.queue)

    @property
    def wish(self) -> Wish:
        """What a person wants of the workers."""
        return Wish(self._row.wish)

    @property
    def stopped(self) -> Stopped | None:
        """Why the study is over or paused."""
        row = self._row
        return None if row.because is None else Stopped(Because(row.because), row.reason)

    @property
    def resumed_at(self) -> int:
        """How many runs had settled when the study was last resumed."""
        return int(self._row.resumed_at)

    @property
    def added_usd(self) -> float:
        """Money that was added to the budget after the study began."""
        return float(self._row.added_usd)

    @property
    def active_s(self) -> float | None:
        """Seconds in which somebody worked on the study."""
        return float(self._row.active_s)

    @property
    def _row(self) -> Row[Any]:
        if self._study is None:
            raise InputError(f"study {self._name!r}: it is no longer in storage {self._url}; it was deleted.")
        return self._study

    def refresh(self) -> None:
        """Read what others have written since the last look."""
        if self._connection is not None:
            if self._row.sequence != self._sequence:  # otherwise there is nothing new: nobody else can write now
                self._read(self._connection)
            return
        with self._errors(), self._engine.connect() as connection:
            self._read(connection)

    def _read(self, connection: Connection, *, lock: bool = False) -> None:
        row = select(*_STATE).where(studies.c.id == self._id)
        self._study = connection.execute(row.with_for_update() if lock else row).one_or_none()
        if self._study is not None and self._study.identity != (self._identity or self._study.identity):
            self._study = None  # SQLite gave the number of a deleted study to a new one
        self._identity = self._row.identity
        if self._row.sequence == self._sequence:
            return
        # Without the lock, others may have written between the two statements: what is newer is left for the next look.
        changed = connection.execute(
            select(*_FACTS)
            .where(trials.c.study_id == self._id, trials.c.sequence.between(self._sequence + 1, self._row.sequence))
            .order_by(trials.c.rank.is_(None), trials.c.rank)
        )
        for trial in changed:
            self._learn(trial)
        self._sequence = self._row.sequence

    def _learn(self, trial: Row[Any]) -> None:
        if trial.rank is None:
            order = order_of(trial.ordered)
            self._open[trial.number] = OpenRun(
                order,
                trial.ticket,
                trial.worker,
                trial.ordered_s,
                trial.launched_s,
                trial.heartbeat_s,
                bool(trial.unwanted),
            )
            return
        known = self._open.pop(trial.number, None)
        if trial.rank != len(self._history):
            raise InfrastructureError(
                f"study {self._name!r} in {self._url}: trial {trial.number} has rank {trial.rank} where {len(self._history)} "
                "was expected; the storage was changed by something else than Lynceus, restore it from a backup."
            )
        order = order_of(trial.ordered) if known is None else known.order
        self._remember(Observation(order, outcome_of(trial.outcome), told_of(trial.told)))

    def _remember(self, observation: Observation) -> None:
        self._history.append(observation)
        self._settled.add(observation.order.number)
        self._frozen = None

    # Writing -----------------------------------------------------------------------------------------------------------

    def exclusive(self) -> AbstractContextManager[None]:
        """The study's lock and one transaction: SQLite's write lock, or a row lock in PostgreSQL."""
        return self._nested() if self._connection is not None else self._locked()

    @contextmanager
    def _nested(self) -> Iterator[None]:
        yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        before = self._known()
        try:
            with self._errors(), self._engine.connect().execution_options(writing=True) as connection:
                with connection.begin():
                    self._connection = connection
                    self._read(connection, lock=True)
                    before = self._known()
                    yield
                    self._write_notes()
                before = self._known()
        finally:
            self._connection = None
            self._notes.clear()
            self._know(*before)

    def _known(self) -> tuple[int, int, dict[int, OpenRun], Row[Any] | None]:
        return self._sequence, len(self._history), dict(self._open), self._study

    def _know(self, sequence: int, settled: int, open_runs: dict[int, OpenRun], study: Row[Any] | None) -> None:
        """What was written did not stay: know again what was known before. (After success nothing changes.)"""
        if len(self._history) != settled:
            self._settled -= {seen.order.number for seen in self._history[settled:]}
            del self._history[settled:]
            self._frozen = None
        self._sequence, self._open, self._study = sequence, open_runs, study

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """Write down that a run will be made."""
        now = self._now()
        with self.exclusive():
            self._write(
                insert(trials).values(
                    study_id=self._id,
                    number=order.number,
                    sequence=self._next(),
                    params=dict(params),
                    ordered=order_record(order),
                    worker=self.worker,
                    ordered_s=now,
                )
            )
            self._note("ordered", order.number)
            self._open[order.number] = OpenRun(order, None, self.worker, now)
            self._sequence = self._row.sequence

    def launched(self, number: int, ticket: str) -> None:
        """Write down how to find it again."""
        now = self._now()
        with self.exclusive():
            if number not in self._open:
                return  # somebody thought us dead and has settled it
            self._change(number, {"ticket": ticket, "launched_s": now, "heartbeat_s": now})
            self._note("launched", number, {"ticket": ticket})
            self._open[number] = replace(self._open[number], ticket=ticket, launched_s=now, heartbeat_s=now)
            self._sequence = self._row.sequence

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """Write down that these runs are looked after; read what is new."""
        with self.exclusive():
            now = self._now()
            if numbers:
                mine = trials.c.study_id == self._id, trials.c.number.in_(numbers), trials.c.rank.is_(None)
                self._write(update(trials).where(*mine).values(heartbeat_s=now))
            self._set_study(**self._worked(now))

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """Write down how it ended, once."""
        number = observation.order.number
        with self.exclusive():
            now, rank = self._now(), self._row.settled
            if number in self._open:
                facts = _settled_facts(observation, rank, now)
                self._change(number, facts, settled=rank + 1, **self._worked(now))
            elif number in self._settled:
                return False
            else:
                self.imported([observation], [params])
                return True
            self._note("settled", number, {"end": str(observation.outcome.end)})
            self._open.pop(number, None)
            self._remember(observation)
            self._sequence = self._row.sequence
        return True

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Write down measurements from elsewhere, which were never ordered: one change, however many they are."""
        if not observations:
            return
        with self.exclusive():
            now, first = self._now(), self._row.settled
            sequence = self._next(settled=first + len(observations), **self._worked(now))
            self._write(
                insert(trials),
                [
                    {
                        "study_id": self._id,
                        "number": seen.order.number,
                        "sequence": sequence,
                        "params": dict(point),
                        "ordered": order_record(seen.order),
                        "ordered_s": now,
                        **_settled_facts(seen, rank, now),
                    }
                    for rank, (seen, point) in enumerate(zip(observations, params, strict=True), first)
                ],
            )
            self._note("imported", observations[0].order.number, {"trials": len(observations)})
            for seen in observations:
                self._remember(seen)
            self._sequence = self._row.sequence

    def closed(self, stopped: Stopped) -> None:
        """Write down that the study is over or paused."""
        with self.exclusive():
            if self.stopped == stopped:
                return
            self._changed(because=str(stopped.because), reason=stopped.reason)
            self._note("closed", None, {"because": str(stopped.because), "reason": stopped.reason})

    def resumed(self, add_usd: float = 0.0) -> None:
        """Write down that it goes on, perhaps with more money."""
        with self.exclusive():
            self._changed(
                because=None,
                reason=None,
                wish=str(Wish.RUN),
                resumed_at=len(self._history),
                added_usd=self.added_usd + add_usd,
            )
            self._note("resumed", None, {"added_usd": add_usd} if add_usd else None)

    def wished(self, wish: Wish) -> None:
        """Write down what a person wants of the workers."""
        with self.exclusive():
            self._changed(wish=str(wish))
            self._note("wished", None, {"wish": str(wish)})

    def unwanted(self, number: int) -> None:
        """Write down that a person wants this one open run to end."""
        with self.exclusive():
            if number not in self._open or self._open[number].unwanted:
                return
            self._change(number, {"unwanted": True})
            self._note("unwanted", number)
            self._open[number] = replace(self._open[number], unwanted=True)
            self._sequence = self._row.sequence

    def enqueued(self, rows: Sequence[int]) -> None:
        """Write down the whole queue anew."""
        with self.exclusive():
            self._changed(queue=list(rows))

    def announced(self, occasion: str) -> bool:
        """Write down that people are told of something; of several workers, one is given the word."""
        with self.exclusive():
            told = self._write(
                select(events.c.detail).where(events.c.study_id == self._id, events.c.kind == "announced")
            ).scalars()
            if any(detail["occasion"] == occasion for detail in told):
                return False
            self._note("announced", None, {"occasion": occasion})
        return True

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over what nobody looks after."""
        with self.exclusive():
            for number, run in list(self._open.items()):
                if run.worker != self.worker and self._abandoned(run):
                    self._change(number, {"worker": self.worker})
                    self._note("adopted", number, {"from": run.worker})
            self.refresh()
        return tuple(run for run in self.open_runs if run.worker == self.worker)

    def release(self) -> None:
        """Let go of my open runs; the journal tells that I left."""
        with self.exclusive():
            for run in self.open_runs:
                if run.worker == self.worker:
                    self._change(run.order.number, {"worker": None})
            self._note("released", None)
            self._next()  # also when nothing was open: whoever watches should notice
            self.refresh()

    def _abandoned(self, run: OpenRun) -> bool:
        if run.worker is None:
            return True
        alive = lives(run.worker)
        if alive is not None:
            return not alive
        # Another host: all we can see is how long ago it gave a sign of life. Heartbeats change no sequence: read it.
        latest = self._write(
            select(func.max(trials.c.heartbeat_s)).where(
                trials.c.study_id == self._id, trials.c.number == run.order.number
            )
        ).scalar()
        return self._now() - (latest or run.ordered_s) > LOST_AFTER_S

    # Requests that are done once ----------------------------------------------------------------------------------------

    def given_answers(self, asked: Sequence[Once]) -> dict[str, Answer]:
        """The answers that were given before, by key; inside `exclusive()`."""
        return given_answers(self._inside(), asked)

    def keep_answers(self, answers: Sequence[Answer]) -> None:
        """Keep answers with what was written since `exclusive()` began."""
        keep_answers(self._inside(), self._id, answers, self._now())

    # Small writes, all inside the lock ---------------------------------------------------------------------------------

    def _next(self, **also: object) -> int:
        """The number of the next change; what else changes in the study is written with it."""
        sequence = self._row.sequence + 1
        self._set_study(sequence=sequence, **also)
        return int(sequence)

    def _change(self, number: int, values: Mapping[str, object], **also: object) -> None:
        mine = trials.c.study_id == self._id, trials.c.number == number
        self._write(update(trials).where(*mine).values(sequence=self._next(**also), **values))

    def _changed(self, **values: object) -> None:
        """Something about the study itself is new; whoever watches notices by its sequence."""
        self._next(**values)
        self._sequence = self._row.sequence

    def _set_study(self, **values: object) -> None:
        row = self._write(update(studies).where(studies.c.id == self._id).values(**values).returning(*_STATE))
        self._study = row.one()

    def _worked(self, now: float) -> dict[str, float]:
        row = self._row
        gap = now - row.seen_s
        return {"active_s": row.active_s + (gap if 0 < gap <= LONGEST_GAP_S else 0.0), "seen_s": now}

    def _note(self, kind: str, number: int | None, detail: Mapping[str, object] | None = None) -> None:
        """A line for the journal; all lines of a transaction are written together at its end."""
        self._notes.append(
            {
                "study_id": self._id,
                "at_s": self._now(),
                "kind": kind,
                "number": number,
                "worker": self.worker,
                "detail": None if detail is None else dict(detail),
            }
        )

    def _write_notes(self) -> None:
        if self._notes:
            self._write(insert(events), self._notes)

    def _write(self, statement: Any, rows: Sequence[Mapping[str, object]] | None = None) -> Any:
        return self._inside().execute(statement, rows)

    def _inside(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("a ledger is written inside exclusive()")
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise InfrastructureError(
                f"storage {self._url}: {one_line(error)}; nothing that was settled is lost, repair it and run: lynceus resume {self._name}."
            ) from error


def _settled_facts(seen: Observation, rank: int, now: float) -> dict[str, object]:
    """What is written of a trial when it settles."""
    outcome, told = outcome_record(seen.outcome), told_record(seen.told)
    return {"rank": rank, "outcome": outcome, "told": told, "settled_s": now}


def one_line(error: DBAPIError) -> str:
    """What the database said, in one line."""
    return " ".join(str(error.orig).split()) or type(error.orig).__name__
