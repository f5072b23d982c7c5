"""Everything that is known of a recurring job: its own record, and the trials of its studies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from lynceus.errors import LynceusError
from lynceus.library.recurring.job_problem import document_size, todays_problem
from lynceus.problem.problem import Problem
from lynceus.recurring.record import JobRecord, StudyRun
from lynceus.storage.sql.jobs import JobStore, StoredJob
from lynceus.storage.sql.storage import Storage


@dataclass(frozen=True)
class KnownJob:
    """A job as it is now, with what decisions about it rest on."""

    stored: StoredJob
    record: JobRecord
    """With the trials of its studies."""
    now_s: float
    """When it was read, by the storage's clock."""

    @cached_property
    def problem(self) -> Problem:
        """Its problem at today's prices."""
        return todays_problem(self.stored.document)

    @property
    def sequence(self) -> int:
        """The change that was read last."""
        return self.stored.head.sequence


def known_job(store: JobStore, name: str) -> KnownJob:
    """A job with the trials of its studies."""
    stored = store.load(name)
    trials = [run for study in stored.studies for run in study_runs(store.storage, study)]
    return KnownJob(stored, replace(stored.record, trials=tuple(trials)), store.storage.clock.now())


def study_runs(storage: Storage, study: str) -> list[StudyRun]:
    """The settled trials of a study; none of one that was deleted or cannot be read: a job goes on without it."""
    try:
        size = document_size(storage.load_study(study).document)
        return [
            StudyRun(
                trial.params,
                trial.outcome.seconds,
                trial.outcome.end,
                trial.outcome.reason,
                size,
                trial.settled_s or trial.ordered_s,
                trial.outcome.charged_usd,
                trial.outcome.metrics,
            )
            for trial in storage.trials(study)
            if trial.outcome is not None
        ]
    except LynceusError:
        return []
