"""Studies in a database: `sqlite:///lynceus.db` on one machine, `postgresql+psycopg://…` for a team."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, delete, exists, func, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from lynceus.errors import InputError, did_you_mean
from lynceus.problem.problem import Problem
from lynceus.storage.serialization import DamagedRecordError, check_seed
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import Address, parse_address, without_credentials
from lynceus.storage.sql.audit import AuditEntry, note_change
from lynceus.storage.sql.clock import StorageClock
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.file_system import warn_of_network
from lynceus.storage.sql.idempotency import Answer, Once, forget_answers, given_answers, keep_answers
from lynceus.storage.sql.journal import SqlJournal
from lynceus.storage.sql.leases import LOST_AFTER_S
from lynceus.storage.sql.rows import Cursor, Event, StudyRecord, TrialRecord, study_record, trial_record
from lynceus.storage.sql.shared_budgets import keep_study_charges
from lynceus.storage.sql.tables import events, settings, studies, trials
from lynceus.storage.sql.totals import Totals, count_totals, read_comparable, read_totals, select_comparable
from lynceus.storage.sql.transaction import database_errors, writing
from lynceus.trial.outcome import Observations
from lynceus.trial.record import RequestedState
from lynceus.trial.shared_budget import Payer

__all__ = [
    "DEFAULT_URL",
    "Cursor",
    "Event",
    "Storage",
    "StudyBusyError",
    "StudyExistsError",
    "StudyRecord",
    "TrialRecord",
    "fingerprint",
    "upgrade",
]

DEFAULT_URL = "sqlite:///lynceus.db"


class StudyExistsError(InputError):
    """A new study has the name of another one."""


class StudyBusyError(InputError):
    """A study has open trials, or a worker runs it, so that it can be neither deleted nor renamed now."""

    see = "durability.md#leases"


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
        now: Callable[[], float] | None = None,
        connections: int = 2,
        lease_s: float = LOST_AFTER_S,
    ) -> None:
        """`now` replaces the database's clock. `connections` are kept open to a PostgreSQL server; more are opened when they are needed.

        A worker that cannot be seen from here may be silent for `lease_s` seconds before its runs are taken over. Without `create`, nothing
        is made where no storage is.
        """
        self.url = url
        """As given; use `shown_url` in messages, it hides the password."""
        self._address = parse_address(url)
        self.shown_url = self._address.shown
        if self._address.file is not None:
            _check_file(Path(self._address.file), self.shown_url, create=create)
            warn_of_network(Path(self._address.file), self.shown_url)
        self._engine, self._lease_s = open_engine(self._address, connections), lease_s
        self.clock = StorageClock(self._engine, now)
        """Tells the time by which the moments of this storage are told."""
        try:
            with self._errors(), _usable(self._address):
                migrate.ensure(self._engine, self.shown_url, create=create)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Storage({self.shown_url!r})"

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
        payer: Payer | None = None,
        by: str | None = None,
    ) -> StudyRecord:
        """A new study; its name must be free. `document` is stored as it is, but for passwords of a storage: put no secret into it.

        With `once`, the answer to that request is stored with it: the study's name. Its runs draw on the budgets of `payer`; `by` is
        who creates it, for the audit.
        """
        check_study_name(name)
        check_seed(seed)
        new = {
            "name": name,
            "identity": secrets.token_hex(4),
            "document": without_credentials(dict(document)),
            "fingerprint": fingerprint,
            "policy": dict(policy),
            "seed": seed,
            **asdict(payer or Payer()),
        }
        with self._errors():
            try:
                with writing(self._engine) as connection:
                    now = self.clock.now(connection)
                    study = insert(studies).values(**new, **_unstarted(now)).returning(studies.c.id)
                    study_id = connection.execute(study).scalar_one()
                    connection.execute(insert(events).values(study_id=study_id, at_s=now, kind="created"))
                    note_change(connection, AuditEntry(now, by or "", "create", name))
                    if once is not None:
                        keep_answers(connection, study_id, [Answer(once, {"name": name})], now)
                        forget_answers(connection, now)
            except IntegrityError:
                raise StudyExistsError(
                    f"study {name!r} exists already in {self.shown_url}; "
                    f"continue it with: lynceus resume {name}, or choose another name."
                ) from None
        return self.load_study(name)

    def load_study(self, name: str) -> StudyRecord:
        """A study by its name."""
        for record in self._records(studies.c.name == name):
            if record.damage is not None:
                raise DamagedRecordError(record.damage)
            return record
        names = [one.name for one in self.studies()]
        known = ", ".join(names[:20]) or "none"
        raise InputError(f"study {name!r} is not in {self.shown_url}; known are: {known}.{did_you_mean(name, names)}")

    def studies(self) -> list[StudyRecord]:
        """Every study, oldest first; those that cannot be read say so in `damage`."""
        return self._records()

    def revise(
        self, name: str, *, document: Mapping[str, Any], fingerprint: str | None = None, changes: Sequence[str] = ()
    ) -> StudyRecord:
        """Another job file for a study from now on; an event keeps what changed. What was measured and charged stays.

        A `fingerprint` comes with other prices; that is refused while trials are open, because their money was reserved at the old ones.
        """
        record = self.load_study(name)
        with self._writing() as connection:
            now, mine = self.clock.now(connection), studies.c.id == record.id
            connection.execute(select(studies.c.id).where(mine).with_for_update())
            values: dict[str, Any] = {"document": without_credentials(dict(document)), **_payer_values(document)}
            if fingerprint is not None:
                values["fingerprint"] = fingerprint
                if count := open_trials(connection, record.id):
                    raise InputError(
                        f"study {name!r} has open trials ({count}) at its present prices; let them end (lynceus stop {name})."
                    )
            connection.execute(update(studies).where(mine).values(**values))
            kind, detail = "revised" if fingerprint is None else "repriced", {"changes": list(changes)}
            connection.execute(insert(events).values(study_id=record.id, at_s=now, kind=kind, detail=detail))
        return self.load_study(name)

    def delete_study(self, name: str, *, only_unstarted: bool = False, by: str | None = None) -> bool:
        """Delete a study and its trials for good, also one that cannot be read; with `only_unstarted`, unless it has a trial.

        What it was charged in this month stays charged to its project and its owner.
        """
        mine = [record.id for record in self.studies() if record.name == name]
        wanted = delete(studies).where(studies.c.id.in_(mine))
        if only_unstarted:
            wanted = wanted.where(~exists().where(trials.c.study_id == studies.c.id))
        with self._writing() as connection:
            now = self.clock.now(connection)
            if not only_unstarted:
                locked = select(studies.c.id).where(studies.c.id.in_(mine)).with_for_update()
                keep_study_charges(connection, connection.execute(locked).scalars().all(), now)
            deleted = connection.execute(wanted).rowcount > 0
            if deleted:
                note_change(connection, AuditEntry(now, by or "", "delete", name))
                connection.execute(delete(settings).where(settings.c.name.in_([outage_setting(one) for one in mine])))
        return deleted

    def journal(self, name: str) -> SqlJournal:
        """The journal of a study, read to its present end."""
        return SqlJournal(self._engine, self.load_study(name).id, name, self._address, self.clock, self._lease_s)

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

    def events(self, name: str, since_s: float = 0.0, *, kinds: Sequence[str] = ()) -> list[Event]:
        """The events of a study, oldest first; only those of some kinds, if given."""
        wanted = select(events).where(events.c.study_id == self.load_study(name).id, events.c.at_s >= since_s)
        if kinds:
            wanted = wanted.where(events.c.kind.in_(kinds))
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
            rows = connection.execute(wanted.order_by(trials.c.number))
            return [trial_record(row, name, self.shown_url) for row in rows]

    def totals(self, name: str) -> Totals:
        """How much a study has used and how its trials ended, without reading them one by one."""
        record = self.load_study(name)
        try:
            with self._engine.connect() as connection:
                return read_totals(connection, record.id)
        except (DBAPIError, LookupError, TypeError, ValueError):  # a text that the database cannot take apart
            return count_totals(self.trials(name))

    def comparable_runs(self, name: str, metrics: Sequence[str] = ()) -> Observations:
        """The finished and stopped runs of a study, with these metrics only, in the order of settling."""
        record = self.load_study(name)
        try:
            with self._engine.connect() as connection:
                return tuple(read_comparable(connection, record.id, metrics))
        except (DBAPIError, LookupError, TypeError, ValueError, AttributeError):
            return tuple(select_comparable(self.trials(name), metrics))

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
            return [study_record(row, self.shown_url) for row in connection.execute(wanted.order_by(studies.c.id))]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction that writes."""
        with self._errors(), writing(self._engine) as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with database_errors(self._address, "check that it can be reached and written"):
            yield


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a storage to this program's version; returns the versions before and after."""
    address = parse_address(url)
    if address.file is not None:
        _check_file(Path(address.file), address.shown, create=True, older=True)
    engine = open_engine(address)
    try:
        with database_errors(address, "nothing was changed"), _usable(address):
            return migrate.upgrade(engine, address.shown)
    finally:
        engine.dispose()


def _check_file(file: Path, shown_url: str, *, create: bool, older: bool = False) -> None:
    """Refuse places where no SQLite storage is or can be made, before anything is written there."""
    where = f"storage {shown_url}: "
    if not create and not file.exists():
        raise InputError(f"{where}there is no such file; check --storage, or run a study first.")
    if file.is_dir():
        raise InputError(f"{where}{file} is a folder; name a file in it, such as {file}/lynceus.db.")
    if not file.parent.is_dir():
        raise InputError(f"{where}there is no folder {file.parent}; make it first.")
    if not os.access(file.parent, os.W_OK):
        raise InputError(f"{where}the folder {file.parent} cannot be written; choose another place, or allow it.")
    if not file.exists():
        return
    if not file.is_file():
        raise InputError(f"{where}{file} is not a regular file; name another one.")
    try:
        migrate.check_file(file, shown_url, create=create, older=older)
    except OSError as error:
        raise InputError(f"{where}{file} cannot be read: {error.strerror}.") from None


@contextmanager
def _usable(address: Address) -> Iterator[None]:
    """Parameters that a driver does not understand are a mistake in the address."""
    try:
        yield
    except (TypeError, ValueError) as error:
        said = " ".join(address.scrub(str(error)).split())
        raise InputError(f"storage {address.shown}: the address cannot be used ({said}); correct it.") from None


def open_trials(connection: Connection, study_id: int) -> int:
    """How many trials of a study have not settled."""
    wanted = select(func.count()).where(trials.c.study_id == study_id, trials.c.rank.is_(None))
    return int(connection.execute(wanted).scalar_one())


def outage_setting(study_id: int) -> str:
    """The name of the setting that tells what does not answer the worker of a study."""
    return f"outage of study {study_id}"


def check_study_name(name: str) -> None:
    """Refuse a name that is no part of a path, or that no user could type again."""
    if not name or "/" in name or not name.isprintable() or name in (".", "..") or len(name) > 200:
        raise InputError(
            f"study name {name!r}: give 1 to 200 printable characters without '/', for example 'nightly-sessions'."
        )


def _payer_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Who pays for a study from now on, by its job file; the owner stays where the file names none."""
    job = document.get("job", {})
    return {"project": job.get("project"), **({"owner": job["owner"]} if job.get("owner") is not None else {})}


def _unstarted(now: float) -> dict[str, Any]:
    """The columns of a study in which nothing has happened yet."""
    zeros = dict.fromkeys(("sequence", "settled", "resumed_at", "added_trials"), 0) | dict.fromkeys(
        ("added_usd", "active_s"), 0.0
    )
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
