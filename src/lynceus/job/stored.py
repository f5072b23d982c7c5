"""From a study's record back to what it is about: from the job file that it keeps, or from the problem that a program gave it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError
from lynceus.job.job import Job
from lynceus.job.problem import problem_of
from lynceus.job.told import NO_COMMAND
from lynceus.ledger.problems import problem_of_record
from lynceus.ledger.rows import StudyRecord
from lynceus.problem import Problem

if TYPE_CHECKING:
    from lynceus.job.prepare import Prepared

_NEVER = 1_000_000
"""Failures in a row after which a study pauses that was told never to."""


def prepared_of(record: StudyRecord) -> Prepared:
    """Everything that a study needs, as when it began."""
    from lynceus.job.prepare import Prepared, prepare  # policies are heavy, and those who only look need none
    from lynceus.policy.compose import compose

    document = record.document
    if "job" in document:
        return prepare(Job.from_stored(document))
    problem = problem_of_record(_problem(record))
    return Prepared(_stand_in(record, document), problem, compose(record.policy), None, None, None)


def job_and_problem(record: StudyRecord) -> tuple[Job, Problem]:
    """The job file and the problem alone, for those who only look."""
    document = record.document
    if "job" in document:
        job = Job.from_stored(document)
        return job, problem_of(job)
    return _stand_in(record, document), problem_of_record(_problem(record))


def _problem(record: StudyRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = record.document.get("problem")
    if found is None:
        raise InputError(
            f"study {record.name!r} was made by a program and keeps no problem (its space is very large, or it is of an earlier "
            "version); only the program that made it can tell more."
        )
    return found


def _stand_in(record: StudyRecord, document: Mapping[str, Any]) -> Job:
    """A job file for a study that has none: it says what fails how often, and that there is no command."""
    conduct = document.get("conduct", {})
    values = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "_", f"s-{record.name}")[:100],
        "run": NO_COMMAND,
        "space": {"configuration": [0]},
        "budget": {"max_trials": 1},
        "trial": {
            "retries": {"infra": conduct.get("retries_infra", 2), "job": conduct.get("retries_job", 0)},
            "max_failures": conduct.get("max_failures", 5) or _NEVER,
            "confirm_best": conduct.get("confirm_best", 0),
        },
    }
    return Job.from_stored({"job": values, "folder": "."})
