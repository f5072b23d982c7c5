"""From the record of a stored study back to its problem, policy and job: from its job file, or from what a program gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.problem import problem_of
from lynceus.problem.problem import Problem
from lynceus.storage.problem_record import problem_of_record
from lynceus.storage.sql.rows import StudyRecord
from lynceus.trial.limit_change import present_problem

if TYPE_CHECKING:
    from lynceus.jobfile.prepared_study import PreparedStudy


def prepared_of(record: StudyRecord) -> PreparedStudy:
    """Everything that a study needs, as when it began."""
    # Policies load slowly, and `job_and_problem` needs none.
    from lynceus.jobfile.prepared_study import PreparedStudy, prepare
    from lynceus.policy.policy_file import compose
    from lynceus.policy.retries import RetryRules

    if "job" in record.document:
        return prepare(Job.from_stored(record.document), to_run=False)
    problem, rules = problem_of_record(_problem(record)), RetryRules(**record.document.get("conduct", {}))
    return PreparedStudy(Job.without_file(record.name), problem, compose(record.policy), rules)


def job_and_problem(record: StudyRecord) -> tuple[Job, Problem]:
    """The job and the problem of a study as it is now, without its policy."""
    if "job" in record.document:
        job = Job.from_stored(record.document)
        return job, present_problem(problem_of(job), record.limit_changes)
    return Job.without_file(record.name), present_problem(problem_of_record(_problem(record)), record.limit_changes)


def _problem(record: StudyRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = record.document.get("problem")
    if found is None:
        raise InputError(
            f"study {record.name!r} was created by a program and its problem is not stored (its space is too large, or it is from "
            f"an earlier version); continue it there, with lynceus.create_study(…, study_name={record.name!r}, load_if_exists=True)."
        )
    return found
