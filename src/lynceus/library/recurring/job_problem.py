"""From the stored document of a recurring job to its problem at today's prices, and to what runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lynceus.errors import InputError, LynceusError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy, prepare
from lynceus.jobfile.price_updates import at_todays_prices
from lynceus.jobfile.problem import problem_of
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.problem.problem import Problem
from lynceus.storage.problem_record import problem_of_record

INPUT_SIZE = "LYNCEUS_INPUT_SIZE"
"""The variable in which a run finds the size of its input, as it was given."""


def prepared_job(
    name: str, document: Mapping[str, Any], *, extra: Sequence[str] = (), envs: Mapping[str, str] | None = None
) -> PreparedStudy:
    """What runs a job. `extra` arguments are appended to its command, `envs` are added to its environment."""
    if "job" not in document:
        return PreparedStudy(Job.without_file(name), todays_problem(document), preset("lynceus"), RetryRules())
    job = Job.from_stored(document)
    update: dict[str, Any] = {"name": name, "envs": {**job.spec.envs, **(envs or {})}}
    if extra:
        update["run"] = _appended(name, job, extra)
    return prepare(replace(job, spec=job.spec.model_copy(update=update)), to_run=False)


def todays_problem(document: Mapping[str, Any]) -> Problem:
    """The problem of a job at today's prices; at those of its document where a catalog cannot be read."""
    if "job" not in document:
        return problem_of_record(document["problem"])
    job = Job.from_stored(document)
    with contextlib.suppress(LynceusError):  # a job goes on without a catalog
        job = at_todays_prices(job).job
    return problem_of(job)


def document_size(document: Mapping[str, Any]) -> float | None:
    """The input size that a job file, or the problem of a program, names; None if it names none."""
    given = (document.get("job") or document.get("problem") or {}).get("input")
    return None if given is None else JobInput.read(given).numbers.get(SIZE)


def _appended(name: str, job: Job, extra: Sequence[str]) -> list[str]:
    run = job.spec.run
    if not isinstance(run, list):
        what = "a script" if isinstance(run, str) else "no command"
        raise InputError(
            f"job {name!r}: arguments after -- are appended to a run in list form, and its run is {what}; "
            "write run: [program, argument, …] in its job file and adopt it again, or leave them out."
        )
    return [*run, *extra]
