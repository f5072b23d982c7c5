"""The command line of a configuration, for users to copy: pasted into a shell, it runs that configuration and no other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from lynceus.executors.command import JobCommand, absent_variables, has_own_variable, variable
from lynceus.executors.placeholders import PLACEHOLDER, as_text, fill
from lynceus.executors.shell_text import fill_script
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.job import Job


def command_line(job: Job, params: Mapping[str, object]) -> str:
    """What a user types to run a configuration by hand; values are quoted. Secrets come from the user's own environment."""
    command = _command(job)
    assigned = {name: fill(text, params) for name, text in command.env.items()} | _values(command, params)
    words = [f"{name}={shlex.quote(text)}" for name, text in assigned.items()]
    absent = [name for name in absent_variables(command, params) if _reads(command, name)]
    if absent:
        words = ["env", *(f"-u {name}" for name in absent), *words]
    return " ".join([*words, without_variables(job, params, in_shell=not words)])


def without_variables(job: Job, params: Mapping[str, object], *, in_shell: bool = True) -> str:
    """The command alone, for where its variables are set already; not `in_shell`: as one command, which assignments can precede."""
    command = _command(job)
    if not isinstance(command.run, str):
        return shlex.join(fill(element, params) for element in command.run)
    if command.shell:
        text = fill_script(command.run, params).strip()
        return text if in_shell and "\n" not in text else f"sh -c {shlex.quote(text)}"
    if command.run.startswith("#!"):
        return with_interpreter(command.run)
    return f"sh -e -c {shlex.quote(command.run.strip())}"


def with_interpreter(script: str) -> str:
    """A command line for a script with an interpreter line (`#!`), which works only in a file."""
    steps = 'f=$(mktemp) && printf "%s\\n" "$1" > "$f" && chmod +x "$f" && "$f"; e=$?; rm -f "$f"; exit $e'
    return f"sh -c {shlex.quote(steps)} sh {shlex.quote(script.rstrip())}"


def _command(job: Job) -> JobCommand:
    _ = job.command  # refuses a study without one
    return job_command(job, dict.fromkeys(job.spec.secrets, ""))


def _values(command: JobCommand, params: Mapping[str, object]) -> dict[str, str]:
    """The variables that the command reads, and those of values that it does not show: the programs it starts may read them."""
    found = {}
    inserted = _inserted(command)
    for name, value in params.items():
        names = [name] if has_own_variable(command, name) else []
        names.append(variable(name))
        read = [one for one in names if _reads(command, one)]
        for one in read or ([] if name in inserted else names):
            found[one] = as_text(value)
    return found


def _inserted(command: JobCommand) -> set[str]:
    """Parameters whose values replace `${name}` in the command or its variables."""
    if isinstance(command.run, str):
        return set(PLACEHOLDER.findall(command.run)) if command.shell else set()
    return {name for text in (*command.run, *command.env.values()) for name in PLACEHOLDER.findall(text)}


def _reads(command: JobCommand, name: str) -> bool:
    """Whether a command reads a variable, as far as its text tells."""
    if not isinstance(command.run, str):
        return any(re.search(rf"\b{re.escape(name)}\b", PLACEHOLDER.sub("", text)) for text in command.run)
    if command.shell:  # where values replace `${name}`
        return re.search(rf"\$\{{?{re.escape(name)}\b", PLACEHOLDER.sub("", command.run)) is not None
    return re.search(rf"\b{re.escape(name)}\b", command.run) is not None
