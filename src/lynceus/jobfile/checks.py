"""Checks of a job file that involve several sections: commands, metrics, objective, secrets."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import PurePosixPath

from lynceus.errors import InputError, did_you_mean
from lynceus.executors.command import check_pattern, variable
from lynceus.executors.serve import NAMES
from lynceus.executors.shell_text import fill_script
from lynceus.executors.supervisor.cut_numbers import MetricPattern
from lynceus.jobfile.job import Job
from lynceus.jobfile.scratch import check_scratch
from lynceus.jobfile.secrets import secret_value, secrets_of
from lynceus.jobfile.variables import SHELLS
from lynceus.problem.formula import PRICE, QUANTITY_WORDS
from lynceus.problem.goal import refuse_price
from lynceus.problem.objective import Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Parameter
from lynceus.space.table import Space

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
"""`${name}` in an argument, a script or an environment variable."""
_SHELL_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
"""`$name`, which only a shell replaces."""
_COMMAND_OPTION = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
"""`-c`, also combined with others: `-lc`, `-ec`."""

_INTERPRETER = re.compile(r"python[0-9.]*|(ba|da|z)?sh|Rscript|perl|ruby|node|julia")
"""Programs whose first argument is the file of a program."""
_SCRIPTS = (".py", ".sh", ".R", ".r", ".pl", ".rb", ".js", ".jl")


def check_startable(job: Job) -> None:
    """Refuse a new study that would fail only once trials run and money is spent."""
    check_objective(job)
    check_runnable(job)
    check_program(job)


def check_runnable(job: Job) -> None:
    """Refuse a study whose trials cannot run here: no command, no working directory, no files for it, or secrets that cannot be read."""
    _ = job.command
    check_workdir(job)
    check_scratch(job)
    secrets_of(job)
    if job.spec.notify is not None:
        for path, source in job.spec.notify.references():
            secret_value(job, path, source)


def check_program(job: Job) -> None:
    """Refuse a program or its file that this machine does not have, where trials run here: every trial would fail."""
    for path, program in _missing_programs(job):
        with job.at(*path):
            raise InputError(
                f"there is no program {program!r} on this machine; install it, or correct {'.'.join(path)}."
            )
    for path, script in _missing_scripts(job):
        with job.at(*path):
            raise InputError(
                f"there is no file {script!r} in {job.workdir}; create it, or correct {'.'.join(path)} or workdir."
            )


def program_notes(job: Job) -> list[str]:
    """Notes about a program or its file that this machine does not have: the job file may be for another one."""
    return [
        *(
            f"{'.'.join(path)}: there is no program {program!r} on this machine, so it cannot run here."
            for path, program in _missing_programs(job)
        ),
        *(
            f"{'.'.join(path)}: there is no file {script!r} in {job.workdir}, so it cannot run here."
            for path, script in _missing_scripts(job)
        ),
    ]


def _missing_programs(job: Job) -> Iterator[tuple[tuple[str, ...], str]]:
    """The field and the name of each program that trials would lack if they ran here.

    Not where `setup` may install it, and not relative paths, which depend on the folder of a trial.
    """
    path = job.spec.envs.get("PATH", os.environ.get("PATH", os.defpath))
    if job.spec.executor.kind != "local" or job.spec.setup is not None or "PATH" in job.spec.secrets:
        return
    for field, command in commands_of(job):
        program = "" if isinstance(command, str) else command[0]
        relative = "/" in program and not program.startswith("/")
        if program and not relative and "${" not in program + path and not shutil.which(program, path=path):
            yield field, program


def _missing_scripts(job: Job) -> Iterator[tuple[tuple[str, ...], str]]:
    """The field and the name of each script that an interpreter is to run and that the working directory does not have.

    Only where trials run here, and not where `setup` may write it or the name depends on a parameter.
    """
    if job.spec.executor.kind != "local" or job.spec.setup is not None:
        return
    for field, command in commands_of(job):
        words = () if isinstance(command, str) else command
        script = words[1] if len(words) > 1 and _INTERPRETER.fullmatch(PurePosixPath(words[0]).name) else ""
        if script.endswith(_SCRIPTS) and "$" not in script and not (job.workdir / script).exists():
            yield field, script


def commands_of(job: Job) -> Iterator[tuple[tuple[str, ...], str | tuple[str, ...]]]:
    """The commands of a trial and where they stand: the job, or a server and perhaps what drives load."""
    if job.has_command:
        yield job.command_field, job.command
    load = None if job.spec.serve is None else job.spec.serve.load.command
    if load is not None:
        yield ("serve", "load", "command"), load if isinstance(load, str) else tuple(load)


def check_objective(job: Job) -> None:
    """Refuse a single word that no metric has: every run of a misspelt `cost` would be paid for and then fail.

    Only for new studies: one that began with such an objective can continue.
    """
    objective = job.spec.objective.strip()
    with job.at("space"):
        refuse_price(job.spec.space)
    known = [*QUANTITY_WORDS, PRICE, *job.spec.metrics, *job.spec.space, *job.spec.derived]
    if " " in objective or objective in known or Objective.parse(objective).is_formula:
        return
    with job.at("objective"):
        hint = did_you_mean(objective, known) or f" Known are {', '.join(['cost', 'time', *job.spec.metrics])}."
        raise InputError(
            f"{objective!r} is neither cost, time nor a name under 'metrics'.{hint} "
            f"If the job reports it in its result file, write 'minimize {objective}'."
        )


def check_commands(job: Job, space: Space) -> None:
    """Refuse placeholders without a value, and settings that contradict each other."""
    spec = job.spec
    parameters = {parameter.name: parameter for parameter in space.parameters}
    for name, value in spec.envs.items():
        with job.at("envs", name):
            check_placeholders(value, parameters)
    unset = parameters.keys() - spec.envs.keys() - spec.secrets.keys()
    for field, command in commands_of(job):
        given = NAMES if field[0] == "serve" else ()
        if isinstance(command, str):
            with job.at(*field):
                _check_script(command, parameters, shell=spec.shell)
            continue
        shell_texts = _shell_texts(command)
        for place, text in enumerate(command):
            with job.at(*field, place):
                if place in shell_texts:
                    _check_unquoted(text, parameters)
                check_placeholders(text, parameters, given)
                _check_shell_variables(text, unset, parameters, in_shell=place in shell_texts)
        if spec.shell:
            with job.at(*field):
                raise InputError(f"shell: true needs a script; write {'.'.join(field)} as one string, or remove shell.")
    for name in spec.envs.keys() & spec.secrets.keys():
        with job.at("secrets", name):
            raise InputError(f"{name} is also in envs; keep one of them.")


def check_workdir(job: Job) -> None:
    """Refuse a working directory that does not exist."""
    with job.at("workdir"):
        if not job.workdir.is_dir():
            raise InputError(f"the folder {job.workdir} does not exist; create it or correct workdir.")


def check_metrics(job: Job) -> None:
    """Refuse regular expressions that cannot give one number."""
    for name, section in job.spec.metrics.items():
        with job.at("metrics", name):
            if section.pattern is not None:
                check_pattern(section.pattern)
            refuse_price([name])
            if name in ("time", "cost", "runtime"):
                raise InputError(f"Lynceus measures {name} itself; give the metric another name.")


def check_hopeless(job: Job, problem: Problem) -> None:
    """Refuse to look for hopeless runs where no metric has a limit."""
    with job.at("trial", "stop_hopeless"):
        limited = [one for one in problem.constraints if one.metric not in ("time", "cost")]
        if job.spec.trial.stop_hopeless is not None and not limited:
            raise InputError(
                "no constraint limits a reported metric, so no run can miss one; add one such as 'accuracy >= 0.9', or remove it."
            )


def argument_notes(job: Job, space: Space) -> list[str]:
    """Notes about arguments that name a variable of a parameter where no shell replaces it."""
    variables = {variable(one.name): one.name for one in space.parameters if one.when is None}
    found = []
    for field, command in commands_of(job):
        words = () if isinstance(command, str) else command
        shells = _shell_texts(words)
        for place, text in enumerate(words):
            names = [] if place in shells or " " in text else _SHELL_VARIABLE.findall(text)
            found += [
                f'{".".join(field)}.{place}: ${name} is not replaced in a list of arguments; write "${{{variables[name]}}}".'
                for name in names
                if name in variables
            ]
    return found


def metric_notes(job: Job, problem: Problem) -> list[str]:
    """Notes about metrics that look misspelt. Undeclared metrics are allowed: a job may report them in its result file."""
    declared = job.spec.metrics
    known = [*declared, *QUANTITY_WORDS]
    if problem.goal.formula is not None:
        known += [PRICE, *problem.space.columns]
    return [
        f"{name!r} in objective or constraints is taken for a metric that the job reports.{hint}"
        for name in problem.metrics
        if name not in declared and (hint := did_you_mean(name, known))
    ]


def pattern_notes(job: Job, problem: Problem) -> list[str]:
    """Notes about patterns that read a part of a decimal number; not where whole numbers limit the metric, because it counts something."""
    bounds = {name: [one.bound for one in problem.constraints if one.metric == name] for name in job.spec.metrics}
    return [
        f"metrics.{name}: the pattern {cut}, unless the metric is always a whole number."
        for name, pattern in job.spec.patterns.items()
        if not (bounds[name] and all(bound.is_integer() for bound in bounds[name]))
        and (cut := MetricPattern(pattern).cut_sample())
    ]


def _check_script(run: str, parameters: Mapping[str, Parameter], *, shell: bool) -> None:
    if shell:
        fill_script(run, dict.fromkeys(parameters, ""))  # refuses places where no value can be quoted
        _check_conditions(run, parameters)
        return
    for name in parameters:
        if f"${{{name}}}" in run and not name.isidentifier():
            raise InputError(
                f'a shell cannot read ${{{name}}} as that parameter; write "${variable(name)}" in the script.'
            )


def check_placeholders(text: str, parameters: Mapping[str, Parameter], given: Sequence[str] = ()) -> None:
    """Every `${name}` must name a parameter that always has a value, or one of the values that are `given` besides."""
    for name in _PLACEHOLDER.findall(text):
        if name not in parameters and name not in given:
            hint = did_you_mean(name, [*parameters, *given]) or f" Parameters are {', '.join(parameters)}."
            raise InputError(f"${{{name}}} is not a parameter of the space.{hint}")
    _check_conditions(text, parameters)


def _check_conditions(text: str, parameters: Mapping[str, Parameter]) -> None:
    """No `${name}` may be a parameter that some configurations lack; other names of a script are shell variables."""
    for name in _PLACEHOLDER.findall(text):
        if name in parameters and parameters[name].when is not None:
            raise InputError(
                f"${{{name}}} has no value where its condition {parameters[name].when!r} is false; "
                f"let the job read {variable(name)} from its environment instead."
            )


def _check_shell_variables(text: str, unset: Set[str], parameters: Mapping[str, Parameter], *, in_shell: bool) -> None:
    """Only scripts find values under the parameters' own names; a list of arguments has none or, in the text of a shell, empty ones."""
    for name in _SHELL_VARIABLE.findall(text):
        if name not in unset:
            continue
        if in_shell:
            raise InputError(
                f'${name} is not set for a list of arguments; write "${variable(name)}", or make run one script.'
            )
        if parameters[name].when is not None:
            raise InputError(
                f"${name} is not replaced in a list of arguments; let the job read {variable(name)} from its environment."
            )
        raise InputError(f'${name} is not replaced in a list of arguments; write "${{{name}}}" with braces.')


def _check_unquoted(text: str, parameters: Mapping[str, Parameter]) -> None:
    """Values are inserted into arguments unchanged; inside the text of a shell, `a; b` would be two commands."""
    for name in _PLACEHOLDER.findall(text):
        if name in parameters:
            raise InputError(
                f'${{{name}}} would be inserted unquoted into a shell command; write "${variable(name)}" instead, '
                "or make run one script (run: |), with shell: true if needed."
            )


def _shell_texts(run: Sequence[str]) -> frozenset[int]:
    """Indices of arguments that a shell reads as commands: the text of `bash -c text`, wherever the shell appears.

    >>> sorted(_shell_texts(["nice", "/bin/bash", "-o", "pipefail", "-ec", "sort $1", "name", "value"]))
    [5]
    """
    found = set()
    for first in (place for place, word in enumerate(run) if PurePosixPath(word).name in SHELLS):
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
