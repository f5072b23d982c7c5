"""From the name of a study or a job file, and a storage, to the record of a study."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lynceus.errors import InputError
from lynceus.storage.sql.storage import DEFAULT_URL, Storage, fingerprint

if TYPE_CHECKING:  # schedulers wait for commands that need no more of this module than the address of a storage
    from lynceus.jobfile.job import Job
    from lynceus.problem.problem import Problem
    from lynceus.storage.sql.rows import StudyRecord


def storage_url(option: str | None, job: Job | None = None) -> str:
    """The storage: the option, else LYNCEUS_STORAGE, else what the job file says, else lynceus.db in the current folder."""
    if option:
        return option
    if os.environ.get("LYNCEUS_STORAGE"):
        return os.environ["LYNCEUS_STORAGE"]
    if job is not None and job.spec.storage is not None:
        return job.spec.storage
    return DEFAULT_URL


def is_job_file(named: str) -> bool:
    """Whether an argument names a job file rather than a study."""
    return named.lower().endswith((".yaml", ".yml"))


def named_job(named: str | None) -> Job | None:
    """The job file that an argument names; None for the name of a study."""
    from lynceus.jobfile.job import Job

    return Job.read(named) if named is not None and is_job_file(named) else None


def find_study(storage: Storage, named: str | None, job: Job | None) -> StudyRecord:
    """The study of a job file, or of a name; without either, the only study of the storage."""
    if job is not None:
        return storage.load_study(job.name)
    return storage.load_study(named) if named is not None else _only_study(storage)


def find_records(named: str | None, storage: str | None) -> tuple[Storage, list[StudyRecord], str | None]:
    """An open storage, the record of a named study or of all studies, and what to tell the user about an edited job file."""
    from lynceus.library.job_edits import changes_note

    job = named_job(named)
    opened = Storage(storage_url(storage, job), create=False)
    if named is None:
        return opened, opened.studies(), None
    record = find_study(opened, named, job)
    return opened, [record], None if job is None else changes_note(record, job)


def check_unchanged(record: StudyRecord, problem: Problem) -> None:
    """Refuse a study whose stored job file no longer describes the problem that it began with."""
    from lynceus.trial.limit_change import original_problem

    if fingerprint(original_problem(problem, record.limit_changes)) != record.fingerprint:
        raise InputError(
            f"study {record.name!r}: the tables that its job file reads have changed since it began, so its trials "
            "would mean something else; restore the tables, or start a study under another name."
        )


def _only_study(storage: Storage) -> StudyRecord:
    records = storage.studies()
    if len(records) == 1:
        return records[0]
    if not records:
        raise InputError(f"{storage.shown_url} has no study yet; start one with: lynceus run job.yaml.")
    known = ", ".join(record.name for record in records[:20])
    raise InputError(f"{storage.shown_url} has several studies; name one of them: {known}.")
