"""Everything that a study is created from, built and checked as a whole: problem, policy, retry rules, limits of trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lynceus.errors import InputError, did_you_mean
from lynceus.jobfile.checks import (
    argument_notes,
    check_commands,
    check_hopeless,
    check_metrics,
    check_workdir,
    metric_notes,
    pattern_notes,
    program_notes,
)
from lynceus.jobfile.executor import check_executor, executor_notes
from lynceus.jobfile.job import Job
from lynceus.jobfile.machines import price_warnings
from lynceus.jobfile.problem import problem_of, with_catalogs
from lynceus.jobfile.scratch import check_scratch, scratch_notes
from lynceus.jobfile.serve import check_prompts, check_serve
from lynceus.jobfile.trial_limits import trial_limits
from lynceus.jobfile.unused_parameters import unused_notes
from lynceus.jobfile.variables import check_parameter_names, misspelt_variables
from lynceus.policy.policy import Policy
from lynceus.policy.policy_file import compose
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.policy.stopping import assumed_uses
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.policy.timeouts.by_name import TIMEOUTS, all_timeouts
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.future_use import format_count
from lynceus.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class PreparedStudy:
    """What a study needs, whether it comes from a job file, a storage or a program."""

    job: Job
    problem: Problem
    policy: Policy
    retry_rules: RetryRules
    cpus: NDArray[np.float64] | None = None
    """Cores of a trial `[q]`; None: no limit."""
    memory_gib: NDArray[np.float64] | None = None
    """Memory of a trial in GiB `[q]`; None: no limit."""

    @property
    def parallel(self) -> int:
        """Trials at the same time."""
        return self.retry_rules.parallel

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what may be unintended."""
        space = self.problem.space
        return (
            *space.notes,
            *program_notes(self.job),
            *executor_notes(self.job),
            *argument_notes(self.job, space),
            *(misspelt_variables(self.job, space) or unused_notes(self.job, space)),
            *metric_notes(self.job, self.problem),
            *pattern_notes(self.job, self.problem),
            *scratch_notes(self.job),
            *price_warnings(self.job),
            *_future_notes(self.job, self.policy),
        )


def prepare_file(path: str | Path, policy: str | None = None) -> PreparedStudy:
    """Read, build and check a job file; `policy` replaces the one that it names."""
    return prepare(Job.read(path), policy)


def prepare(job: Job, policy: str | None = None, *, to_run: bool = True) -> PreparedStudy:
    """Build and check everything that a job describes; `policy` replaces the one that it names.

    Not `to_run`: a study that began can be read on machines without its working directory, and whatever its parameters are called.
    """
    job = with_catalogs(job)
    problem = problem_of(job)
    check_commands(job, problem.space)
    check_serve(job, problem.space)
    if to_run:
        check_parameter_names(job, problem.space)
        check_workdir(job)
        check_scratch(job)
        check_prompts(job)
    check_metrics(job)
    check_hopeless(job, problem)
    check_executor(job, problem.space)
    return PreparedStudy(
        job,
        problem,
        policy_of(job, policy),
        retry_rules_of(job),
        trial_limits(job, problem.space, "cpus"),
        trial_limits(job, problem.space, "memory"),
    )


def policy_of(job: Job, name: str | None = None) -> Policy:
    """The policy, with the timeout that the section `trial` names."""
    trial = job.spec.trial
    named = job.spec.policy
    timeouts = TIMEOUTS if trial.timeout in (*TIMEOUTS, "auto") else all_timeouts()
    if trial.timeout not in (*timeouts, "auto"):
        with job.at("trial", "timeout"):
            hint = did_you_mean(trial.timeout, ["auto", *timeouts]) or f" Known are auto, {', '.join(timeouts)}."
            raise InputError(f"there is no rule {trial.timeout!r}.{hint}")
    if name is not None:
        try:
            policy = preset(name)
        except InputError as error:
            raise InputError(f"--{error}") from None  # the option is wrong, not the file
    elif isinstance(named, str):
        with job.at("policy"):
            policy = preset(named)
    else:
        policy = compose(named, at=lambda *path: job.document.at("policy", *path))
    if trial.timeout != "auto":
        policy = replace(policy, timeout=timeouts[trial.timeout])
    longest_s = trial.max_duration
    if longest_s is None and job.spec.serve is not None:  # a measurement is over then, however the server behaves
        longest_s = job.spec.serve.longest_s(job.spec.seed)
    if longest_s is not None:
        policy = replace(policy, timeout=Timeout(AtMost(longest_s, policy.timeout.rule), policy.timeout.censored))
    return policy


def retry_rules_of(job: Job) -> RetryRules:
    """What the study does when runs fail, and before it recommends a configuration."""
    trial, spot = job.spec.trial, job.spec.resources.spot
    preempted = trial.retries.preempted
    if any(job.spec.resources.spots) and spot.on_demand:
        preempted = spot.interruptions - 1  # the next interruption is the last on spot machines
    return RetryRules(
        trial.retries.infra,
        trial.retries.job,
        trial.max_failures,
        trial.confirm_best,
        retries_preempted=preempted,
        parallel=trial.parallel,
    )


def _future_notes(job: Job, policy: Policy) -> Iterator[str]:
    """A sentence where the parts of a policy count other future uses than the job file."""
    future, assumed = job.spec.future, assumed_uses(policy.stop)
    if future is None or assumed is None or isinstance(job.spec.policy, str):
        return
    count = future.future_use().count
    if count != assumed:
        yield f"future says {format_count(count)} uses and policy.stop {format_count(assumed)}; those of future count."
