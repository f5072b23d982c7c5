"""From the section `executor` of a job file to the executor that runs its trials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from lynceus.errors import InputError, MissingExtraError, hint
from lynceus.executors.command import JobCommand, Scratch, Target
from lynceus.executors.interface import Executor, SupportsClose
from lynceus.executors.plugin import ExecutorContext, Plugin
from lynceus.executors.registry import executor_plugin
from lynceus.executors.resources import Resources
from lynceus.executors.serve import Serve
from lynceus.executors.spot_rehearsal import SpotRehearsal
from lynceus.jobfile.job import Job
from lynceus.jobfile.run_folder import run_root
from lynceus.jobfile.sections.executor import ExecutorSection
from lynceus.jobfile.yaml.errors import first_error
from lynceus.problem.problem import Problem
from lynceus.space.table import Space

if TYPE_CHECKING:
    from lynceus.jobfile.prepared_study import PreparedStudy

_GIB = 1 << 30
_NO_COMMAND = ("sh", "-c", "echo 'This study has no command: a program runs its trials (ask and tell).' >&2; exit 1")
"""Executors of studies without a command only stop and clean up; should one start a trial, it fails with this message."""


def executor_section(job: Job) -> tuple[Plugin, BaseModel]:
    """The plugin that a job names, and its validated options."""
    section = job.spec.executor
    with job.at("executor", "kind"):
        plugin = executor_plugin(section.kind)
    return plugin, _options(job, plugin, dict(section.model_extra or {}))


def check_executor(job: Job, space: Space) -> None:
    """Refuse an unknown executor, and options that do not fit it or the space."""
    plugin, options = executor_section(job)
    if plugin.check is not None:
        with job.at("executor"):
            plugin.check(options, space)


def executor_notes(job: Job) -> list[str]:
    """A note about an executor that cannot be used here, because an optional package is missing."""
    try:
        require = executor_section(job)[0].require
        if require is not None:
            require()
    except MissingExtraError as error:
        return [f"executor: {error}"]
    return []


@contextmanager
def executor_of(prepared: PreparedStudy, secrets: Mapping[str, str]) -> Iterator[Executor]:
    """The executor that the job file names, closed with the context; runs outlive it."""
    plugin, options = executor_section(prepared.job)
    executor = plugin.make(executor_context(prepared, secrets), options)
    rehearse = prepared.job.spec.resources.spot.rehearse
    try:
        yield SpotRehearsal(executor, prepared.problem, prepared.job.spec.seed) if rehearse else executor
    finally:
        if isinstance(executor, SupportsClose):
            executor.close()


def executor_context(prepared: PreparedStudy, secrets: Mapping[str, str]) -> ExecutorContext:
    """What every executor is made from."""

    def resources(row: int) -> Resources:
        memory = None if prepared.memory_gib is None else int(prepared.memory_gib[row] * _GIB)
        return Resources(None if prepared.cpus is None else float(prepared.cpus[row]), memory)

    limited = prepared.cpus is not None or prepared.memory_gib is not None
    job, setup = prepared.job, prepared.job.spec.setup
    return ExecutorContext(
        prepared.problem,
        replace(job_command(job, secrets), targets=targets_of(prepared), serve=served(job, prepared.problem)),
        run_root(job).resolve(),
        resources if limited else None,
        tuple(setup) if isinstance(setup, list) else setup,
    )


def targets_of(prepared: PreparedStudy) -> tuple[Target, ...]:
    """The limits on reported metrics that a training has to reach, if the job file has hopeless runs stopped."""
    error_rate = prepared.job.spec.trial.stop_hopeless
    if error_rate is None:
        return ()
    problem = prepared.problem
    end_s = problem.deadline_s if math.isfinite(problem.deadline_s) else None
    return tuple(
        Target(one.metric, one.bound, one.at_least, end_s, error_rate)
        for one in problem.constraints
        if one.metric not in ("time", "cost")
    )


def served(job: Job, problem: Problem) -> Serve | None:
    """How the server of a job is measured; None for a job without one."""
    section = job.spec.serve
    return None if section is None else section.serve(job.spec.seed, problem)


def job_command(job: Job, secrets: Mapping[str, str]) -> JobCommand:
    """The command of a job with its environment and secrets."""
    spec = job.spec
    return JobCommand(
        job.command if job.has_command else _NO_COMMAND,
        shell=spec.shell,
        workdir=job.workdir,
        env=spec.envs,
        secrets=secrets,
        serve=None if spec.serve is None else spec.serve.serve(spec.seed),
        conditional=tuple(name for name, section in spec.space.items() if section.when is not None),
        metrics=spec.patterns,
        grace_s=spec.trial.grace,
        scratch=Scratch(
            spec.trial.scratch, tuple(spec.trial.copy_), tuple(spec.trial.link), keep=spec.trial.keep_scratch
        ),
    )


def _options(job: Job, plugin: Plugin, given: dict[str, Any]) -> BaseModel:
    try:
        return plugin.options.model_validate(given)
    except ValidationError as error:
        path, message = first_error(error, plugin.options, given)
        if len(path) == 1 and path[0] not in plugin.options.model_fields:
            known = [*ExecutorSection.model_fields, *plugin.options.model_fields]
            message = f"there is no field '{path[0]}'{hint(str(path[0]), known)}"
        with job.at("executor", *path):
            raise InputError(message) from None
