"""One change of a recurring job: a transaction under the lock of its row. Versions, runs and the audit only grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from lynceus.errors import InputError
from lynceus.recurring.record import Change, OpenCanary, ProductionRun, Version
from lynceus.recurring.settings import Settings
from lynceus.storage.job_serialization import (
    canary_of,
    change_facts,
    run_of,
    run_record,
    settings_of,
    settings_record,
    version_facts,
)
from lynceus.storage.serialization import storable
from lynceus.storage.sql.address import without_credentials
from lynceus.storage.sql.clock import StorageClock
from lynceus.storage.sql.shared_budgets import shared_budgets
from lynceus.storage.sql.tables import job_changes, job_runs, job_versions, jobs, studies
from lynceus.trial.shared_budget import Payer, SharedBudget

LONGEST_ID = 200
TOLD = "told"
"""The kind of entries that keep users from being told of an event twice; no part of the audit."""


class JobChangedError(Exception):
    """Somebody else changed the job after it was read: read it again and decide again."""


class OtherRunError(InputError):
    """A run id came with two different runs."""


class JobWriter:
    """Writes inside one transaction, under the lock of the job's row."""

    def __init__(self, connection: Connection, row: Row[Any], clock: StorageClock, lease_s: float) -> None:
        self._connection, self._row, self._clock, self._lease_s = connection, row, clock, lease_s
        self.now = clock.now(connection)
        """The storage's time, seconds since the epoch."""
        self.canary = canary_of(row.canary)
        self.current = int(row.current)
        """The version in production."""
        self._values: dict[str, Any] = {}
        """What changes of the job's row."""
        self._changed = False

    @property
    def settings(self) -> Settings:
        """What the user allows."""
        return settings_of(self._values.get("settings", self._row.settings))

    @property
    def canary_lives(self) -> bool:
        """Whether a run tries a version now: it was reserved, and its scheduler has given a sign of life since."""
        if self.canary is None:
            return False
        time = self._clock.lease_now(self.now)
        if self._row.lease_clock != time.clock:  # the machine was restarted: no run of it is left
            return False
        return self._row.lease_s is not None and time.at_s <= float(self._row.lease_s)

    def add_version(self, version: Version) -> Version:
        """Add a version under the next number; it is not in production yet."""
        version = replace(version, number=self._count(job_versions) + 1, at_s=self.now)
        values = version_values(version)
        self._connection.execute(insert(job_versions).values(job_id=self._row.id, **values))
        self._changed = True
        return version

    def set_current(self, number: int, change: Change) -> None:
        """Put a version into production."""
        count = self._count(job_versions)
        if not 1 <= number <= count:
            raise InputError(f"job {self._row.name!r} has no version {number}; its versions are 1 to {count}.")
        evidence = {**change.evidence, "before": self.current}
        self.current = self._values["current"] = number
        self.note(replace(change, version=number, evidence=evidence))

    def set_settings(self, settings: Settings, kind: str, by: str, reason: str) -> None:
        """Other settings from now on."""
        before, after = settings_record(self.settings), settings_record(settings)
        changed = {
            name: [before.get(name), after.get(name)]
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        }
        if changed:
            self._values["settings"] = after
            self.note(Change(self.now, kind, by=by, reason=reason, evidence={"changed": changed}))

    def set_document(self, document: Mapping[str, Any], studies: Sequence[str]) -> None:
        """Another job file and other studies from now on. Past runs keep their meaning: versions name their parameters."""
        payer = job_payer(self._connection, document, studies)
        self._values |= {"document": without_credentials(dict(document)), "studies": list(studies), **payer}
        self._changed = True

    def add_run(self, run: ProductionRun) -> bool:
        """Record a run; False, and nothing changes, if it is recorded already. `OtherRunError` if another run has its id."""
        check_run_id(run.run_id)
        wanted = select(job_runs.c.facts).where(job_runs.c.job_id == self._row.id, job_runs.c.run_id == run.run_id)
        known = self._connection.execute(wanted).scalar_one_or_none()
        if known is not None:
            if not _same_run(run_of(known), run):
                raise OtherRunError(
                    f"run {run.run_id!r} of job {self._row.name!r} was recorded already with other values, and nothing was "
                    "changed; give every run an id of its own."
                )
            return False
        count = self._count(job_versions)
        if not 1 <= run.version <= count:
            raise InputError(
                f"job {self._row.name!r} has no version {run.version}, so run {run.run_id!r} cannot have had it; "
                f"its versions are 1 to {count}."
            )
        values = {
            "run_id": run.run_id,
            "sequence": self._row.sequence + 1,
            "version": run.version,
            "ended_s": run.ended_s,
            "recorded_s": self.now,
            "facts": storable(run_record(run)),
        }
        self._connection.execute(insert(job_runs).values(job_id=self._row.id, **values))
        if self.canary is not None and self.canary.run_id == run.run_id:
            self.end_canary()
        self._changed = True
        return True

    def reserve_canary(
        self, version: int, run_id: str, reserved_usd: float, *, timeout_s: float = math.inf
    ) -> OpenCanary:
        """Let one run try a version; `JobChangedError` while another run does.

        A scheduler that runs the job itself gives no sign of life until it reports: until `timeout_s` its canary is taken to run.
        """
        if self.canary_lives and self.canary is not None and self.canary.run_id != run_id:
            raise JobChangedError
        self.canary = OpenCanary(version, run_id, self.now, reserved_usd)
        self._values["canary"] = asdict(self.canary)
        self._renew(timeout_s if math.isfinite(timeout_s) else 0.0)
        return self.canary

    def shared_budgets(self) -> tuple[SharedBudget, ...]:
        """The budgets on which the job draws, held until the transaction ends."""
        payer = Payer(self._row.project, self._row.owner)
        return shared_budgets(self._connection, payer, self.now, hold=True)

    def renew_canary(self, run_id: str) -> bool:
        """The scheduler of a canary gives a sign of life; False if the canary is no longer its own."""
        if self.canary is None or self.canary.run_id != run_id:
            return False
        self._renew(0.0)
        return True

    def end_canary(self) -> None:
        """No run tries a version any more."""
        self.canary = None
        self._values |= {"canary": None, "lease_s": None, "lease_clock": None}

    def note(self, change: Change) -> None:
        """An entry of the audit, by the storage's clock."""
        change = replace(change, at_s=self.now, after_runs=self._count(job_runs))
        self._connection.execute(insert(job_changes).values(job_id=self._row.id, **change_values(change)))
        self._changed = True

    def announced(self, key: str) -> bool:
        """Users are told of an event; False, and nothing changes, when that happened already."""
        wanted = select(job_changes.c.reason).where(job_changes.c.job_id == self._row.id, job_changes.c.kind == TOLD)
        if key in self._connection.execute(wanted).scalars().all():
            return False
        self.note(Change(self.now, TOLD, reason=key))
        return True

    def finish(self) -> None:
        """Write what changed of the job's row; readers notice by its sequence."""
        if self._changed or self._values:
            values = {**self._values, "sequence": self._row.sequence + 1}
            self._connection.execute(update(jobs).where(jobs.c.id == self._row.id).values(**values))

    def _renew(self, more_s: float) -> None:
        """Let the canary live at least so much longer than without a sign of life."""
        time = self._clock.lease_now(self.now)
        until_s = time.at_s + self._lease_s + more_s
        if self._row.lease_s is not None and self._row.lease_clock == time.clock and "canary" not in self._values:
            until_s = max(until_s, float(self._row.lease_s))
        self._values |= {"lease_s": until_s, "lease_clock": time.clock}

    def _count(self, table: Any) -> int:
        wanted = select(func.count()).where(table.c.job_id == self._row.id)
        if table is job_changes:
            wanted = wanted.where(table.c.kind != TOLD)
        return int(self._connection.execute(wanted).scalar_one())


def job_payer(connection: Connection, document: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Who pays for a job: whom its job file names, else who pays for the newest of its studies."""
    wanted = select(studies.c.project, studies.c.owner).where(studies.c.name.in_(names)).order_by(studies.c.id.desc())
    newest = connection.execute(wanted.limit(1)).one_or_none()
    job, known = document.get("job", {}), {} if newest is None else newest._asdict()
    return {name: job.get(name) or known.get(name) for name in ("project", "owner")}


def version_values(version: Version) -> dict[str, Any]:
    """The row of a version."""
    return {
        "number": version.number,
        "params": storable(dict(version.params)),
        "at_s": version.at_s,
        "source": version.source,
        "author": storable(version.by),
        "reason": storable(version.reason),
        "facts": storable(version_facts(version)),
    }


def change_values(change: Change) -> dict[str, Any]:
    """The row of an entry of the audit."""
    return {
        "at_s": change.at_s,
        "kind": change.kind,
        "author": storable(change.by),
        "reason": storable(change.reason),
        "version": change.version,
        "facts": storable(change_facts(change)),
    }


def check_id(text: str, what: str, example: str) -> None:
    """Refuse a text that no column can hold, or that no user could type again."""
    if not text or not text.isprintable() or len(text) > LONGEST_ID:
        raise InputError(f"{what} {text[:60]!r}: give 1 to {LONGEST_ID} printable characters, for example {example}.")


def check_run_id(run_id: str) -> None:
    """Refuse an id under which a run could not be recorded, before it starts."""
    check_id(run_id, "run id", "'2026-11-18T02:00'")


def _same_run(one: ProductionRun, other: ProductionRun) -> bool:
    """Whether two reports tell of the same run. Its moments may differ, because a scheduler need not know them."""
    return (one.seconds, one.size, one.end, one.version) == (other.seconds, other.size, other.end, other.version)
