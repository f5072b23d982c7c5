"""From what a person types to the study itself, with its problem, its policy and its ledger."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

from lynceus.cli.changes import adopt_changes, tell_changes
from lynceus.cli.named import check_unchanged, is_file, storage_url
from lynceus.conduct import as_seen, typical
from lynceus.errors import InputError
from lynceus.history import History
from lynceus.job import Job
from lynceus.job.prepare import Prepared, conduct_of, prepare
from lynceus.job.stored import prepared_of
from lynceus.ledger.sql import Storage, StudyRecord, fingerprint
from lynceus.policy.compose import compose, describe
from lynceus.study import Study


@dataclass(frozen=True)
class Opened:
    """A study with everything around it."""

    storage: Storage
    record: StudyRecord
    prepared: Prepared
    study: Study

    @property
    def name(self) -> str:
        """The study's name."""
        return self.record.name

    @property
    def known(self) -> History:
        """What conclusions are drawn from: a configuration that ran several times counts with its median run."""
        return typical(as_seen(self.study.history, self.study.conduct))

    @property
    def baseline(self) -> int | None:
        """Row of the configuration used until now."""
        return self.prepared.baseline


def open_study(
    named: str | None,
    storage: str | None,
    changed: Callable[[Storage, StudyRecord, Job], StudyRecord] = tell_changes,
) -> Opened:
    """A study that exists; `changed` says what becomes of a job file that was edited since it began."""
    job = Job.read(named) if named is not None and is_file(named) else None
    kept = Storage(storage_url(storage, job), create=False)
    record = kept.load_study(job.name if job is not None else named) if named is not None else _only(kept)
    return _closing(opened(kept, record if job is None else changed(kept, record, job)))


def _closing(one: Opened) -> Opened:
    """Connections are closed with the command that opened them, however it ends."""
    weakref.finalize(one, one.storage.close)
    return one


def opened(storage: Storage, record: StudyRecord) -> Opened:
    """A study from its record: the job file it was created with, rebuilt."""
    from dataclasses import replace

    prepared = prepared_of(record)
    check_unchanged(record, prepared.problem)
    policy = compose(record.policy)
    prepared = replace(prepared, policy=policy)
    study = new_study(prepared, record, storage)
    return Opened(storage, record, prepared, study)


def new_study(prepared: Prepared, record: StudyRecord, storage: Storage) -> Study:
    """The study object over the ledger of a storage."""
    return Study(
        prepared.problem,
        prepared.policy,
        seed=record.seed,
        name=record.name,
        ledger=storage.ledger(record.name),
        conduct=conduct_of(prepared.job),
    )


def _only(storage: Storage) -> StudyRecord:
    records = storage.studies()
    if len(records) == 1:
        return records[0]
    known = ", ".join(record.name for record in records[:20])
    if not records:
        raise InputError(f"{storage.shown_url} holds no study yet; start one with: lynceus run job.yaml.")
    raise InputError(f"{storage.shown_url} holds several studies; name one of them: {known}.")


def create_or_open(file: str, storage: str | None, *, policy: str | None = None, seed: int | None = None) -> Opened:
    """The study of a job file, created when the storage does not hold it yet; of later edits it takes over how trials run."""
    job = Job.read(file)
    prepared = prepare(job, policy)
    kept = Storage(storage_url(storage, job))
    if all(record.name != job.name for record in kept.studies()):
        record = kept.create_study(
            job.name,
            document=prepared.job.stored(),
            fingerprint=fingerprint(prepared.problem),
            policy=describe(prepared.policy),
            seed=job.spec.seed if seed is None else seed,
        )
        return _closing(Opened(kept, record, prepared, new_study(prepared, record, kept)))
    return _closing(opened(kept, adopt_changes(kept, kept.load_study(job.name), job)))
