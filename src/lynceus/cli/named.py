"""From what a person types (a study's name, a job file, a storage) to a study's record."""

from __future__ import annotations

import os

from lynceus.cli.changes import tell_changes
from lynceus.errors import InputError
from lynceus.job import Job
from lynceus.ledger.sql import DEFAULT_URL, Storage, StudyRecord, fingerprint
from lynceus.problem import Problem


def storage_url(option: str | None, job: Job | None = None) -> str:
    """The storage: the option or LYNCEUS_STORAGE, else what the job file says, else lynceus.db in the current folder."""
    if option:
        return option
    if os.environ.get("LYNCEUS_STORAGE"):
        return os.environ["LYNCEUS_STORAGE"]
    if job is not None and job.spec.storage is not None:
        return job.spec.storage
    return DEFAULT_URL


def is_file(named: str) -> bool:
    """Whether a person means a job file rather than a study."""
    return named.lower().endswith((".yaml", ".yml"))


def storage_of(named: str | None, option: str | None) -> Storage:
    """The storage of a study that exists, by its name or its job file."""
    job = Job.read(named) if named is not None and is_file(named) else None
    return Storage(storage_url(option, job), create=False)


def named_study(storage: Storage, named: str) -> StudyRecord:
    """A study by its name or its job file."""
    if not is_file(named):
        return storage.load_study(named)
    job = Job.read(named)
    return tell_changes(storage, storage.load_study(job.name), job)


def check_unchanged(record: StudyRecord, problem: Problem) -> None:
    """Refuse a study whose stored job file no longer describes the problem that it began with."""
    if fingerprint(problem) != record.fingerprint:
        raise InputError(
            f"study {record.name!r}: the tables that its job file reads have changed since it began, so that its trials "
            "no longer mean the same; restore them, or start a study under another name."
        )
