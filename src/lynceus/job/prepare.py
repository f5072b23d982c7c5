"""From a job file to everything that a study needs: the problem, the policy, the limits of each trial."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from lynceus.conduct import Conduct
from lynceus.errors import InputError
from lynceus.executor.command import variable
from lynceus.job.executors import checked_executor
from lynceus.job.job import Job
from lynceus.job.machines import limits_of, price_warnings
from lynceus.job.problem import problem_of, with_prices
from lynceus.job.words import memory_gib
from lynceus.policy import TIMEOUTS, Policy, preset
from lynceus.policy.compose import compose
from lynceus.problem import COST_WORDS, TIME_WORDS, Problem
from lynceus.space import Expression, Parameter, Space
from lynceus.space.column import nearest
from lynceus.timeout import AtMost, Timeout

_PLACE = re.compile(r"\$\{([^{}]*)\}")
"""`${name}` in an argument, a script or an environment variable."""
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
"""`$name`, which only a shell reads."""
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_COMMAND_OPTION = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
"""`-c`, also together with others: `-lc`, `-ec`."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A job, checked as a whole."""

    job: Job
    problem: Problem
    policy: Policy
    baseline: int | None
    """Row of the configuration used until now."""
    cpus: NDArray[np.float64] | None
    """Cores of a trial `[q]`; nothing: not limited."""
    memory_gib: NDArray[np.float64] | None
    """Memory of a trial in GiB `[q]`; nothing: not limited."""

    @property
    def parallel(self) -> int:
        """Trials at the same time."""
        return self.job.spec.trial.parallel

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what looks unintended."""
        return (*self.problem.space.notes, *_odd_metrics(self.job, self.problem), *price_warnings(self.job))


def prepare(job: Job, policy: str | None = None) -> Prepared:
    """Build and check everything that a job file says; `policy` replaces the one it names."""
    job = with_prices(job)
    problem = problem_of(job)
    checked_commands(job, problem.space)
    checked_metrics(job, problem)
    checked_executor(job, problem.space)
    return Prepared(
        job,
        problem,
        policy_of(job, policy),
        _baseline(job, problem.space),
        _amount(job, problem.space, "cpus"),
        _amount(job, problem.space, "memory"),
    )


def policy_of(job: Job, name: str | None = None) -> Policy:
    """The policy with the timeout that the section `trial` names."""
    trial = job.spec.trial
    named = job.spec.policy
    timeout = None if trial.timeout == "auto" else trial.timeout
    if timeout is not None and timeout not in TIMEOUTS:
        with job.at("trial", "timeout"):
            hint = nearest(timeout, ["auto", *TIMEOUTS]) or f" Known are auto, {', '.join(TIMEOUTS)}."
            raise InputError(f"there is no rule {timeout!r}.{hint}")
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
    if timeout is not None:
        policy = replace(policy, timeout=TIMEOUTS[timeout])
    if trial.max_duration is not None:
        policy = replace(policy, timeout=Timeout(AtMost(trial.max_duration, policy.timeout.cap), policy.timeout.fill))
    return policy


def checked_commands(job: Job, space: Space) -> None:
    """Refuse placeholders that no value fills, and settings that contradict each other."""
    spec = job.spec
    parameters = {parameter.name: parameter for parameter in space.parameters}
    texts: dict[tuple[str | int, ...], str] = {("envs", name): value for name, value in spec.envs.items()}
    if isinstance(spec.run, list):
        texts |= {("run", place): value for place, value in enumerate(spec.run)}
    elif spec.shell:
        texts[("run",)] = spec.run
    read_by_shells = _read_by_shells(spec.run) if isinstance(spec.run, list) else frozenset()
    for path, text in texts.items():
        with job.at(*path):
            if path[0] == "run" and path[-1] in read_by_shells:
                _check_unquoted(text, parameters)
            _check_places(text, parameters, strict=path != ("run",))
            if path[0] == "run" and isinstance(spec.run, list):
                _check_bare(text, parameters.keys() - spec.envs.keys() - spec.secrets.keys())
    with job.at("run"):
        if isinstance(spec.run, list) and spec.shell:
            raise InputError("shell: true belongs to a script; write run as one text, or remove shell.")
        if isinstance(spec.run, str) and not spec.shell:
            for name in parameters:
                if f"${{{name}}}" in spec.run and not name.isidentifier():
                    raise InputError(
                        f'a shell does not read ${{{name}}} as that parameter; write "${variable(name)}" in the script.'
                    )
    with job.at("workdir"):
        if not job.workdir.is_dir():
            raise InputError(f"the folder {job.workdir} does not exist; create it or correct workdir.")
    for name in spec.envs.keys() & spec.secrets.keys():
        with job.at("secrets", name):
            raise InputError(f"{name} stands in envs, too; keep one of them.")


def _check_places(text: str, parameters: Mapping[str, Parameter], *, strict: bool) -> None:
    """Every `${name}` names a parameter that always has a value. A script may also use variables of the shell."""
    for word in _PLACE.findall(text):
        if word not in parameters:
            if strict:
                hint = nearest(word, parameters) or f" Parameters are {', '.join(parameters)}."
                raise InputError(f"${{{word}}} names no parameter of the space.{hint}")
        elif parameters[word].when is not None:
            raise InputError(
                f"${{{word}}} has no value where its condition {parameters[word].when!r} is false; "
                f"let the job read {variable(word)} from its environment instead."
            )


def _check_bare(text: str, unset: Set[str]) -> None:
    """Only scripts find values under the parameters' own names; a shell in a list would quietly run with empty ones."""
    for word in _BARE.findall(text):
        if word in unset:
            raise InputError(
                f'${word} is not set for a list of arguments; write "${variable(word)}", or make run one script.'
            )


def _check_unquoted(text: str, parameters: Mapping[str, Parameter]) -> None:
    """A list puts values in as they are; inside a shell's text `a; b` would be two commands."""
    for word in _PLACE.findall(text):
        if word in parameters:
            raise InputError(
                f'${{{word}}} would be pasted unquoted into a shell; write "${variable(word)}" instead, '
                "or make run one script (run: |), if need be with shell: true."
            )


def _read_by_shells(run: Sequence[str]) -> frozenset[int]:
    """Places of the arguments that a shell reads as commands: the text of `bash -c text`, wherever the shell stands.

    >>> sorted(_read_by_shells(["nice", "/bin/bash", "-o", "pipefail", "-ec", "sort $1", "name", "value"]))
    [5]
    """
    found = set()
    for first in (place for place, word in enumerate(run) if PurePosixPath(word).name in _SHELLS):
        commands, value_follows = False, False
        for place, word in enumerate(run[first + 1 :], first + 1):
            if value_follows:
                value_follows = False
            elif word[:1] in ("-", "+") and word not in ("-", "--"):
                commands = commands or _COMMAND_OPTION.fullmatch(word) is not None
                value_follows = word in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")
            elif word not in ("-", "--"):
                if commands:
                    found.add(place)
                break
    return frozenset(found)


def checked_metrics(job: Job, problem: Problem) -> None:
    """Refuse regular expressions that cannot give one number."""
    for name, pattern in job.spec.metrics.items():
        with job.at("metrics", name):
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise InputError(f"{pattern!r} is no regular expression: {error}.") from None
            if groups != 1:
                raise InputError(f"{pattern!r} has {groups} groups; put one pair of parentheses around the number.")
            if name in ("time", "cost", "runtime"):
                raise InputError(f"{name} is measured by Lynceus itself; give the metric another name.")


def checked_objective(job: Job) -> None:
    """Refuse a single word that nothing is known to measure: a misspelt `cost` would be paid for until every run has failed.

    Not part of `prepare`, so that studies that began with such a word go on.
    """
    word = job.spec.objective.strip()
    known = [*TIME_WORDS, *COST_WORDS, *job.spec.metrics]
    if " " in word or word in known:
        return
    with job.at("objective"):
        hint = nearest(word, known) or f" Known are {', '.join(['cost', 'time', *job.spec.metrics])}."
        raise InputError(
            f"{word!r} is neither cost, time nor a name under 'metrics'.{hint} "
            f"If the job reports it in its result file, write 'minimize {word}'."
        )


def _odd_metrics(job: Job, problem: Problem) -> list[str]:
    """Metrics may also come from the job's result file, so that an undeclared one is no mistake; one that looks misspelt may be."""
    declared = job.spec.metrics
    return [
        f"{name!r} in objective or constraints is taken for a metric that the job reports.{hint}"
        for name in problem.metrics
        if name not in declared and (hint := nearest(name, [*declared, *TIME_WORDS, *COST_WORDS]))
    ]


def _baseline(job: Job, space: Space) -> int | None:
    if job.spec.baseline is None:
        return None
    with job.at("baseline"):
        return space.row(job.spec.baseline)


def _amount(job: Job, space: Space, field: str) -> NDArray[np.float64] | None:
    if job.spec.resources.from_catalog:
        return limits_of(job, space, field)
    value: float | str | None = getattr(job.spec.resources, field)
    if value is None:
        return None
    if isinstance(value, str) and field == "memory" and (gib := memory_gib(value)) is not None:
        value = gib
    with job.at("resources", field):
        if isinstance(value, str):
            column = Expression.parse(value, "it").evaluate(space.columns)
        else:
            column = np.full(len(space), value)
        try:
            amounts = np.array([float(cell) for cell in column.tolist()])
        except (TypeError, ValueError):
            raise InputError(
                f"{value!r} is not a number for every configuration; map texts to numbers in 'derived'."
            ) from None
        if not (np.isfinite(amounts) & (amounts > 0)).all():
            raise InputError(f"{value!r} is {amounts.min():g} for some configuration; give amounts above 0.")
        return amounts


def conduct_of(job: Job) -> Conduct:
    """What the study does when runs fail, and before it recommends."""
    trial, spot = job.spec.trial, job.spec.resources.spot
    preempted = trial.retries.preempted
    if any(job.spec.resources.spots) and spot.on_demand:
        preempted = spot.interruptions - 1  # the next one is the last on spot machines
    return Conduct(
        trial.retries.infra,
        trial.retries.job,
        trial.max_failures,
        trial.confirm_best,
        retries_preempted=preempted,
        parallel=trial.parallel,
    )
