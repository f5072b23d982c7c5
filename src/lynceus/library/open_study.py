"""Open and create stored studies, with their problem, policy and journal."""

from __future__ import annotations

import enum
import weakref
from dataclasses import dataclass, replace
from pathlib import Path

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.jobfile.stored_study import prepared_of
from lynceus.library.find import check_unchanged, find_study, named_job, storage_url
from lynceus.library.history import with_history
from lynceus.library.job_budgets import payer_of
from lynceus.library.job_edits import adopt_changes, changes, changes_note, refuse_changes
from lynceus.library.probe import with_probe
from lynceus.policy.policy_file import compose, describe
from lynceus.storage.serialization import DamagedRecordError
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, StudyExistsError, fingerprint
from lynceus.storage.user import current_user
from lynceus.study.study import Study
from lynceus.study.view import StudyView
from lynceus.trial.limit_change import present_problem
from lynceus.trial.present_input import present_runs


class JobEdits(enum.Enum):
    """What to do about edits of a job file since its study began."""

    MENTION = "mention"
    """The stored job counts; `OpenStudy.note` names the edits."""
    ADOPT = "adopt"
    """Later trials follow the file where that is possible; otherwise it is an error."""
    IGNORE = "ignore"


@dataclass(frozen=True)
class OpenStudyView:
    """A stored study for readers: its record, its problem, and a snapshot or the study itself."""

    storage: Storage
    record: StudyRecord
    prepared: PreparedStudy
    study: StudyView
    note: str | None = None
    """What to tell the user about edits of the job file, or about history that is not used."""

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.record.name


@dataclass(frozen=True)
class OpenStudy(OpenStudyView):
    """A stored study that can be written."""

    study: Study


def open_named(named: str | None, storage: str | None, edits: JobEdits = JobEdits.MENTION) -> OpenStudy:
    """A study by its name or its job file; without either, the only study of the storage.

    The storage is closed when the result is garbage collected.
    """
    job = named_job(named)
    opened = Storage(storage_url(storage, job), create=False)
    record, note = find_study(opened, named, job), None
    if job is not None and edits is JobEdits.ADOPT:
        record, note = adopt_changes(opened, record, job)
    elif job is not None and edits is JobEdits.MENTION:
        note = changes_note(record, job)
    return _closing(replace(open_record(opened, record), note=note))


def open_record(storage: Storage, record: StudyRecord) -> OpenStudy:
    """A study by its record, with the policy that it began with."""
    if record.damage is not None:
        raise DamagedRecordError(record.damage)
    prepared = prepared_of(record)
    check_unchanged(record, prepared.problem)
    problem = present_problem(prepared.problem, record.limit_changes)
    prepared = replace(prepared, problem=problem, policy=compose(record.policy))
    return OpenStudy(storage, record, prepared, _study(prepared, record, storage))


def refuse_edits(job: Job, storage: str | None) -> None:
    """Refuse a job file that its study cannot follow; a file without a study yet is fine."""
    url = storage_url(storage, job)
    file = parse_address(url).file
    if file is not None and not Path(file).exists():
        return
    try:
        with Storage(url, create=False) as opened:
            records = opened.studies()
    except InputError:
        return  # a database that has no tables yet; the search says what is wrong with another one
    for record in records:
        if record.name == job.name and record.damage is None and "job" in record.document:
            refuse_changes(job, record, [change for change in changes(job, record) if not change.adoptable])


def create_or_open(prepared: PreparedStudy, storage: str | None, *, seed: int | None = None) -> OpenStudy:
    """The study of a job file. It is created when the storage does not have it; otherwise it adopts edits of the file.

    The storage is closed when the result is garbage collected.
    """
    job = prepared.job
    opened = Storage(storage_url(storage, job))
    if not any(record.name == job.name for record in opened.studies()):
        prepared, notes = with_history(prepared, opened)
        prepared, said = with_probe(prepared)
        job, notes = prepared.job, (*notes, *said)
        try:
            record = opened.create_study(
                job.name,
                document=job.stored(),
                fingerprint=fingerprint(prepared.problem),
                policy=describe(prepared.policy),
                seed=job.spec.seed if seed is None else seed,
                payer=payer_of(job),
                by=current_user(),
            )
            note = "; ".join(notes) + "." if notes else None
            return _closing(OpenStudy(opened, record, prepared, _study(prepared, record, opened), note))
        except StudyExistsError:
            pass  # another process was first
    record, note = adopt_changes(opened, opened.load_study(job.name), job)
    one = _closing(replace(open_record(opened, record), note=note))
    _search_on_new_input(one.study)
    return one


def _search_on_new_input(study: Study) -> None:
    """Go on with a search that is over, where the job reads another input by now: its answer was for the former one."""
    if study.over and study.observations and not present_runs(study.problem, study.observations):
        study.resume()


def _study(prepared: PreparedStudy, record: StudyRecord, storage: Storage) -> Study:
    return Study(
        prepared.problem,
        prepared.policy,
        seed=record.seed,
        name=record.name,
        journal=storage.journal(record.name),
        retry_rules=prepared.retry_rules,
    )


def _closing(one: OpenStudy) -> OpenStudy:
    """Close connections with the command that opened them, however it ends."""
    weakref.finalize(one, one.storage.close)
    return one
