"""Recurring jobs in a database. What is in production is one number of the job's row; everything else is added and never changed.

A change names the sequence number that its decision rests on, so that of two schedulers that decide at the same moment one decides again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.exc import IntegrityError

from lynceus.errors import InputError, did_you_mean
from lynceus.recurring.record import Change, JobRecord, OpenCanary, Version
from lynceus.recurring.settings import Settings
from lynceus.storage.job_serialization import basis_of, canary_of, run_of, settings_of, settings_record
from lynceus.storage.serialization import reading
from lynceus.storage.sql.address import without_credentials
from lynceus.storage.sql.job_writer import (
    TOLD,
    JobChangedError,
    JobWriter,
    change_values,
    check_id,
    job_payer,
    version_values,
)
from lynceus.storage.sql.shared_budgets import keep_job_charges
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tables import job_changes, job_runs, job_versions, jobs
from lynceus.storage.sql.transaction import writing
from lynceus.trial.shared_budget import Payer

CANARY_LEASE_S = 900.0
"""A canary whose scheduler has been silent for so long no longer keeps others from trying."""
ADOPTING = ("adopt", "reprice", "retune", "return", "rollback")
"""Kinds of changes that put a version into production."""


class UnknownJobError(InputError):
    """A storage has no job of this name."""

    see = "recurring.md#adopt-run-record"


class JobExistsError(InputError):
    """A new job has the name of another one."""


@dataclass(frozen=True)
class JobHead:
    """What a scheduler needs of a job: quick to read, however many runs it has."""

    name: str
    identity: str
    sequence: int
    """Grows with every change."""
    version: Version
    """In production."""
    settings: Settings
    open_canary: OpenCanary | None


@dataclass(frozen=True)
class StoredJob:
    """Everything that is written down of a job."""

    head: JobHead
    document: Mapping[str, Any]
    """The job file, or the problem of a program, as a study stores it."""
    studies: tuple[str, ...]
    """Names of the studies whose trials tell of it, oldest first."""
    created_s: float
    payer: Payer
    """On whose budgets its canaries, searches and production runs draw."""
    record: JobRecord
    """Without the trials of its studies."""


class JobStore:
    """The recurring jobs of a storage.

    >>> store = JobStore(Storage("sqlite://"))  # in memory, for this example
    >>> first = Version(1, {"nodes": 4}, 0.0, by="ana", reason="as until now")
    >>> head = store.create("nightly", {"name": "nightly"}, first)
    >>> [(one.name, one.version.number, dict(one.version.params)) for one in store.heads()]
    [('nightly', 1, {'nodes': 4})]
    """

    def __init__(self, storage: Storage, *, lease_s: float = CANARY_LEASE_S) -> None:
        self.storage, self._lease_s = storage, lease_s

    def create(
        self,
        name: str,
        document: Mapping[str, Any],
        first: Version,
        *,
        settings: Settings | None = None,
        studies: Sequence[str] = (),
    ) -> JobHead:
        """A new job with its first version in production; its name must be free."""
        check_id(name, "job name", "'nightly-sessions'")
        if "/" in name or name in (".", ".."):
            raise InputError(f"job name {name!r}: it is a folder and part of an address; leave out '/', '.' and '..'.")
        with self.storage._errors():
            try:
                with writing(self.storage._engine) as connection:
                    now = self.storage.clock.now(connection)
                    new = insert(jobs).values(
                        name=name,
                        identity=secrets.token_hex(4),
                        created_s=now,
                        document=without_credentials(dict(document)),
                        settings=settings_record(settings or Settings()),
                        studies=list(studies),
                        sequence=1,
                        current=1,
                        **job_payer(connection, document, studies),
                    )
                    job_id = connection.execute(new.returning(jobs.c.id)).scalar_one()
                    first = replace(first, number=1, at_s=now)
                    connection.execute(insert(job_versions).values(job_id=job_id, **version_values(first)))
                    change = Change(now, "adopt", 1, by=first.by, reason=first.reason, expected=first.expected)
                    connection.execute(insert(job_changes).values(job_id=job_id, **change_values(change)))
            except IntegrityError:
                raise JobExistsError(f"job {name!r} exists already in {self.storage.shown_url}.") from None
        return self.head(name)

    def names(self) -> list[str]:
        """The names of all jobs, also of those that cannot be read."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            return list(connection.execute(select(jobs.c.name).order_by(jobs.c.name)).scalars())

    def heads(self) -> list[JobHead]:
        """All jobs, by name."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            return [self._head(row) for row in connection.execute(_HEADS.order_by(jobs.c.name))]

    def head(self, name: str) -> JobHead:
        """What is in production: one small query."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            row = connection.execute(_HEADS.where(jobs.c.name == name)).one_or_none()
        if row is None:
            self._unknown(name)
        return self._head(row)

    def load(self, name: str) -> StoredJob:
        """Everything that is written down of a job, as of one moment."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            row = connection.execute(_HEADS.where(jobs.c.name == name)).one_or_none()
            if row is None:
                self._unknown(name)
            versions, runs, changes = (
                connection.execute(select(table).where(table.c.job_id == row.id).order_by(*order)).all()
                for table, order in (
                    (job_versions, [job_versions.c.number]),
                    (job_runs, [job_runs.c.ended_s, job_runs.c.sequence]),
                    (job_changes, [job_changes.c.id]),
                )
            )
        head = self._head(row)
        with reading(f"job {name!r}", self.storage.shown_url):
            audit = tuple(_change(one) for one in changes if one.kind != TOLD)
            adopted = {one.version: one.at_s for one in reversed(audit) if one.kind in ADOPTING}
            record = JobRecord(
                head.name,
                head.settings,
                tuple(replace(_version(one), adopted_s=adopted.get(one.number)) for one in versions),
                tuple(run_of(one.facts) for one in runs),
                head.version.number,
                head.open_canary,
                audit,
                identity=head.identity,
            )
            return StoredJob(
                head,
                without_credentials(dict(row.document)),
                tuple(row.studies),
                float(row.created_s),
                Payer(row.project, row.owner),
                record,
            )

    def delete(self, name: str) -> bool:
        """Delete a job with its versions, runs and audit, for good."""
        with self.storage._writing() as connection:
            connection.execute(select(jobs.c.id).where(jobs.c.name == name).with_for_update())
            keep_job_charges(connection, name, self.storage.clock.now(connection))
            return connection.execute(delete(jobs).where(jobs.c.name == name)).rowcount > 0

    @contextmanager
    def changing(self, name: str, sequence: int | None = None) -> Iterator[JobWriter]:
        """One transaction that changes a job, kept as a whole or not at all.

        `JobChangedError` if the job was changed after `sequence`, on which a decision rests.
        """
        with self.storage._writing() as connection:
            row = connection.execute(select(jobs).where(jobs.c.name == name).with_for_update()).one_or_none()
            if row is None:
                raise UnknownJobError(
                    f"job {name!r} is not in {self.storage.shown_url}; adopt it with: lynceus adopt {name} --from STUDY."
                )
            if sequence is not None and row.sequence != sequence:
                raise JobChangedError
            with reading(f"job {name!r}", self.storage.shown_url):
                writer = JobWriter(connection, row, self.storage.clock, self._lease_s)
                _ = writer.settings
            yield writer
            writer.finish()

    def _head(self, row: Row[Any]) -> JobHead:
        with reading(f"job {row.name!r}", self.storage.shown_url):
            canary = canary_of(row.canary)
            return JobHead(row.name, row.identity, row.sequence, _version(row), settings_of(row.settings), canary)

    def _unknown(self, name: str) -> NoReturn:
        names = self.names()
        known, meant = ", ".join(names[:20]) or "none", did_you_mean(name, names)
        raise UnknownJobError(
            f"job {name!r} is not in {self.storage.shown_url}; known are: {known}; adopt it with: lynceus adopt {name} --from STUDY.{meant}"
        )


_HEADS = select(jobs, *(column for column in job_versions.columns if column.name != "job_id")).join_from(
    jobs, job_versions, (job_versions.c.job_id == jobs.c.id) & (job_versions.c.number == jobs.c.current)
)
"""Every job with its version in production."""


def _version(row: Row[Any]) -> Version:
    return Version(
        int(row.number),
        dict(row.params),
        float(row.at_s),
        str(row.author),
        str(row.reason),
        str(row.source),
        dict(row.facts["evidence"]),
        dict(row.facts["expected"]),
        basis_of(row.facts),
    )


def _change(row: Row[Any]) -> Change:
    facts = row.facts
    return Change(
        float(row.at_s),
        str(row.kind),
        row.version,
        int(facts["after_runs"]),
        str(row.author),
        str(row.reason),
        dict(facts["evidence"]),
        dict(facts["expected"]),
        float(facts["cost_usd"]),
    )
