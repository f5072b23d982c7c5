"""Studies in a database: `sqlite:///lynceus.db` on one machine, `postgresql+psycopg://…` for a team."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, delete, event, func, insert, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from lynceus.errors import InfrastructureError, InputError, MissingExtraError
from lynceus.problem.problem import Problem
from lynceus.storage.sql import migrate
from lynceus.storage.sql.idempotency import Answer, Once, forget_answers, given_answers, keep_answers
from lynceus.storage.sql.journal import SqlJournal, one_line
from lynceus.storage.sql.rows import Cursor, Event, StudyRecord, TrialRecord, study_record, trial_record
from lynceus.storage.sql.tables import events, settings, studies, trials
from lynceus.storage.sql.totals import Totals, read_comparable, read_totals
from lynceus.trial.outcome import Observations
from lynceus.trial.record import RequestedState

__all__ = ["DEFAULT_URL", "Cursor", "Event", "Storage", "StudyRecord", "TrialRecord", "fingerprint", "upgrade"]

DEFAULT_URL = "sqlite:///lynceus.db"
BUSY_S = 120.0
"""How long SQLite waits for another process that decides; a deep look-ahead takes seconds."""


class Storage:
    """The studies in one database.

    >>> storage = Storage("sqlite://")  # in memory, for this example
    >>> record = storage.create_study("nightly", document={"name": "nightly"}, fingerprint="…", policy={"name": "sweep"})
    >>> [(one.name, one.state, one.trials) for one in storage.studies()]
    [('nightly', 'RUNNING', 0)]
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        create: bool = True,
        now: Callable[[], float] = time.time,
        connections: int = 2,
    ) -> None:
        """`connections` are kept open to a PostgreSQL server; more are opened when they are needed."""
        self.url = url
        """As given; use `shown_url` in messages, it hides the password."""
        parsed = _parsed(url)
        self.shown_url = parsed.render_as_string(hide_password=True)
        self._now = now
        file = parsed.database if parsed.get_backend_name() == "sqlite" else None
        if file and file != ":memory:":
            if not create and not Path(file).exists():
                raise InputError(
                    f"storage {self.shown_url}: there is no such file; check --storage, or run a study first."
                )
            if Path(file).is_dir():
                raise InputError(
                    f"storage {self.shown_url}: {file} is a folder; name a file in it, such as {file}/lynceus.db."
                )
            if not Path(file).parent.is_dir():
                raise InputError(f"storage {self.shown_url}: there is no folder {Path(file).parent}; make it first.")
            if not os.access(Path(file).parent, os.W_OK):
                raise InputError(
                    f"storage {self.shown_url}: the folder {Path(file).parent} cannot be written; choose another place, or allow it."
                )
        self._engine = _engine(parsed, connections)
        try:
            with self._errors():
                migrate.ensure(self._engine, self.shown_url)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Storage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def create_study(
        self,
        name: str,
        *,
        document: Mapping[str, Any],
        fingerprint: str,
        policy: Mapping[str, Any],
        seed: int = 0,
        once: Once | None = None,
    ) -> StudyRecord:
        """A new study; its name must be free. `document` is stored as it is: put no secret into it.

        With `once`, the answer to that request is stored with it: the study's name.
        """
        _check_name(name)
        now = self._now()
        new = {
            "name": name,
            "identity": secrets.token_hex(4),
            "document": dict(document),
            "fingerprint": fingerprint,
            "policy": dict(policy),
            "seed": seed,
            **_unstarted(now),
        }
        try:
            with self._writing() as connection:
                study_id = connection.execute(insert(studies).values(**new).returning(studies.c.id)).scalar_one()
                connection.execute(insert(events).values(study_id=study_id, at_s=now, kind="created"))
                if once is not None:
                    keep_answers(connection, study_id, [Answer(once, {"name": name})], now)
                    forget_answers(connection, now)
        except IntegrityError:
            raise InputError(
                f"study {name!r} exists already in {self.shown_url}; continue it with: lynceus resume {name}, or choose another name."
            ) from None
        return self.load_study(name)

    def load_study(self, name: str) -> StudyRecord:
        """A study by its name."""
        for record in self._records(studies.c.name == name):
            return record
        known = ", ".join(one.name for one in self.studies()[:20]) or "none"
        raise InputError(f"study {name!r} is not in {self.shown_url}; known are: {known}.")

    def studies(self) -> list[StudyRecord]:
        """Every study, oldest first."""
        return self._records()

    def revise(
        self, name: str, *, document: Mapping[str, Any], fingerprint: str | None = None, changes: Sequence[str] = ()
    ) -> StudyRecord:
        """Another job file for a study from now on; an event keeps what changed. What was measured and charged stays.

        A `fingerprint` comes with other prices; that is refused while trials are open, because their money was reserved at the old ones.
        """
        record, now = self.load_study(name), self._now()
        with self._writing() as connection:
            mine = studies.c.id == record.id
            connection.execute(select(studies.c.id).where(mine).with_for_update())
            values: dict[str, Any] = {"document": dict(document)}
            if fingerprint is not None:
                values["fingerprint"] = fingerprint
                still_open = select(func.count()).where(trials.c.study_id == record.id, trials.c.rank.is_(None))
                if count := connection.execute(still_open).scalar_one():
                    raise InputError(
                        f"study {name!r} has {count} open trials at its present prices; let them end (lynceus stop {name}), then try again."
                    )
            connection.execute(update(studies).where(mine).values(**values))
            kind, detail = "revised" if fingerprint is None else "repriced", {"changes": list(changes)}
            connection.execute(insert(events).values(study_id=record.id, at_s=now, kind=kind, detail=detail))
        return self.load_study(name)

    def delete_study(self, name: str) -> None:
        """Delete a study and its trials for good."""
        record = self.load_study(name)
        with self._writing() as connection:
            connection.execute(delete(studies).where(studies.c.id == record.id))

    def journal(self, name: str) -> SqlJournal:
        """The journal of a study, read to its present end."""
        return SqlJournal(self._engine, self.load_study(name).id, name, self.shown_url, self._now)

    def given_answer(self, once: Once) -> Mapping[str, Any] | None:
        """The answer that this request got before; None: the request is new."""
        with self._errors(), self._engine.connect() as connection:
            found = given_answers(connection, [once]).get(once.key)
        return None if found is None else found.to(once)

    def cursors(self) -> list[Cursor]:
        """How far every study has come, oldest first."""
        wanted = select(studies.c.name, studies.c.identity, studies.c.sequence, studies.c.settled)
        with self._errors(), self._engine.connect() as connection:
            return [Cursor(*row) for row in connection.execute(wanted.order_by(studies.c.id))]

    def events(self, name: str, since_s: float = 0.0) -> list[Event]:
        """The events of a study, oldest first."""
        wanted = select(events).where(events.c.study_id == self.load_study(name).id, events.c.at_s >= since_s)
        with self._errors(), self._engine.connect() as connection:
            return [
                Event(row.at_s, row.kind, row.number, row.worker, row.detail)
                for row in connection.execute(wanted.order_by(events.c.id))
            ]

    def trials(self, name: str, number: int | None = None) -> list[TrialRecord]:
        """The trials of a study in the order of their numbers, or only one of them."""
        wanted = select(trials).where(trials.c.study_id == self.load_study(name).id)
        if number is not None:
            wanted = wanted.where(trials.c.number == number)
        with self._errors(), self._engine.connect() as connection:
            return [trial_record(row) for row in connection.execute(wanted.order_by(trials.c.number))]

    def totals(self, name: str) -> Totals:
        """How much a study has used and how its trials ended, without reading them one by one."""
        record = self.load_study(name)
        with self._errors(), self._engine.connect() as connection:
            return read_totals(connection, record.id)

    def comparable_runs(self, name: str, metrics: Sequence[str] = ()) -> Observations:
        """The finished and stopped runs of a study, with these metrics only, in the order of settling."""
        record = self.load_study(name)
        with self._errors(), self._engine.connect() as connection:
            return tuple(read_comparable(connection, record.id, metrics))

    def setting(self, name: str) -> str | None:
        """A value that belongs to the whole storage."""
        with self._errors(), self._engine.connect() as connection:
            return connection.execute(select(settings.c.value).where(settings.c.name == name)).scalar()

    def set_setting(self, name: str, value: str) -> None:
        """Keep a value that belongs to the whole storage."""
        with self._writing() as connection:
            connection.execute(delete(settings).where(settings.c.name == name))
            connection.execute(insert(settings).values(name=name, value=value))

    def _records(self, *conditions: Any) -> list[StudyRecord]:
        count = select(func.count()).where(trials.c.study_id == studies.c.id).scalar_subquery()
        wanted = select(studies, count.label("trials")).where(*conditions)
        with self._errors(), self._engine.connect() as connection:
            return [study_record(row) for row in connection.execute(wanted.order_by(studies.c.id))]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction that writes."""
        with self._errors(), self._engine.connect().execution_options(writing=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise InfrastructureError(
                f"storage {self.shown_url}: {one_line(error)}; check that it can be reached and written."
            ) from error


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a storage to this program's version; returns the versions before and after."""
    parsed = _parsed(url)
    engine = _engine(parsed)
    try:
        return migrate.upgrade(engine, parsed.render_as_string(hide_password=True))
    except DBAPIError as error:
        shown = parsed.render_as_string(hide_password=True)
        raise InfrastructureError(f"storage {shown}: {one_line(error)}; nothing was changed.") from error
    finally:
        engine.dispose()


def _check_name(name: str) -> None:
    if not name or "/" in name or "\0" in name or name in (".", "..") or len(name) > 200:
        raise InputError(f"study name {name!r}: give 1 to 200 characters without '/', for example 'nightly-sessions'.")


def _unstarted(now: float) -> dict[str, Any]:
    """The columns of a study in which nothing has happened yet."""
    zeros = dict.fromkeys(("sequence", "settled", "resumed_at"), 0) | dict.fromkeys(("added_usd", "active_s"), 0.0)
    return {**zeros, "created_s": now, "seen_s": now, "wish": str(RequestedState.RUN), "queue": []}


def fingerprint(problem: Problem) -> str:
    """A SHA-256 of everything in a problem but its budget: rows and outcomes mean the same while it stays the same."""
    masks = [None if mask is None else mask.tobytes().hex() for mask in (problem.testable, problem.answerable)]
    facts = [
        problem.space.fingerprint,
        str(problem.objective),
        [
            [constraint.metric, constraint.bound, constraint.at_least, constraint.confidence]
            for constraint in problem.constraints
        ],
        [getattr(problem.billing, name) for name in ("granularity_s", "minimum_s", "boot_s", "fee_usd", "warm")],
        masks,
        problem.repeats,
        *([] if problem.fraction is None else [problem.fraction]),
        *([] if problem.preemption is None else [problem.preemption.facts()]),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _parsed(url: str) -> URL:
    hint = "write for example sqlite:///lynceus.db or postgresql+psycopg://user@host/lynceus"
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError(f"storage: {url!r} is not a database address; {hint}.") from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"storage: {parsed.drivername!r} is not supported; {hint}.")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def _engine(parsed: URL, connections: int = 2) -> Engine:
    try:
        if parsed.get_backend_name() == "postgresql":
            return create_engine(
                parsed, pool_pre_ping=True, pool_size=connections, connect_args={"connect_timeout": 10}
            )
        engine = create_engine(parsed, connect_args={"timeout": BUSY_S})
    except (ModuleNotFoundError, NoSuchModuleError):
        raise MissingExtraError("PostgreSQL storages", "postgres") from None

    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we begin transactions ourselves
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
