"""The command line of a configuration, for users to copy: pasted into a shell, it runs that configuration and no other."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from itertools import groupby

from lynceus.executors.command import JobCommand, absent_variables, has_own_variable, variable
from lynceus.executors.placeholders import PLACEHOLDER, as_text, fill
from lynceus.executors.serve import DEFAULT_PORT
from lynceus.executors.shell_text import fill_script
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.job import Job
from lynceus.trial.text import clean_text


def command_line(job: Job, params: Mapping[str, object]) -> str:
    """What a user types to run a configuration by hand, in the job's working directory. Values are quoted; secrets are only referred to."""
    command = _command(job)
    assigned = {name: fill(text, params) for name, text in command.env.items()} | _values(command, params)
    if isinstance(command.run, str) and not command.shell:
        assigned |= {name: str(value) for name, value in served_at(job).items() if _reads(command, name)}
    words = [f"{name}={quoted(text)}" for name, text in assigned.items()]
    if absent := absent_variables(command, params):
        words = ["env", *(f"-u {name}" for name in absent), *words]
    words = [*_secrets(job), *_files_of_a_run(command, params), *words]
    return " ".join([*words, without_variables(job, params)])


def quoted(text: str) -> str:
    r"""A text as one word of a POSIX shell that a terminal shows as it is: `printf` makes tabs, and characters that it would obey or hide.

    >>> print(quoted("it's $5"), quoted("a\x1b[0m"))
    'it'"'"'s $5' a"$(printf '\033')"'[0m'
    """
    parts = []
    for hidden, run in groupby(text, key=lambda one: one == "\t" or clean_text(one) != one):
        part = "".join(run)
        octal = "".join(f"\\{byte:03o}" for byte in part.encode("utf-8", "surrogateescape")) if hidden else ""
        parts.append(f"\"$(printf '{octal}')\"" if hidden else shlex.quote(part))
    return "".join(parts) or "''"


def without_variables(job: Job, params: Mapping[str, object]) -> str:
    """The command alone, for where its variables are set already: one command, which assignments can precede."""
    command = _command(job)
    if not isinstance(command.run, str):
        return " ".join(quoted(fill(element, {**params, **served_at(job)})) for element in command.run)
    if command.shell:
        return f"sh -c {quoted(fill_script(command.run, {**params, **served_at(job)}).strip())}"
    if command.run.startswith("#!"):
        return with_interpreter(command.run)
    return f"sh -e -c {quoted(command.run.strip())}"


def served_at(job: Job) -> dict[str, object]:
    """Port and address of a server that is started by hand; empty for other jobs."""
    if job.spec.serve is None:
        return {}
    port = job.spec.serve.port or DEFAULT_PORT
    return {"port": port, "url": f"http://127.0.0.1:{port}"}


def with_interpreter(script: str) -> str:
    """A command line for a script with an interpreter line (`#!`), which works only in a file."""
    steps = 'f=$(mktemp) && printf "%s\\n" "$1" > "$f" && chmod +x "$f" && "$f"; e=$?; rm -f "$f"; exit $e'
    return f"sh -c {shlex.quote(steps)} sh {quoted(script.rstrip())}"


def _command(job: Job) -> JobCommand:
    _ = job.command  # refuses a study without one
    return job_command(job, dict.fromkeys(job.spec.secrets, ""))


def _secrets(job: Job) -> list[str]:
    """Assignments of secrets that the job knows under another name than the user's environment, before a program could show them."""
    found = []
    for name, source in job.spec.secrets.items():
        kind, _, where = source.partition(":")
        if kind == "file":
            found.append(f'{name}="$(cat {quoted(str(job.file(where)))})"')
        elif where != name:
            found.append(f'{name}="${where}"')
    return found


def _files_of_a_run(command: JobCommand, params: Mapping[str, object]) -> list[str]:
    """Files and folders that every run has for itself, if the command reads their names: made for a run by hand, too."""
    found = []
    if _reads(command, "LYNCEUS_PARAMS"):
        values = quoted(json.dumps(dict(params)))
        found.append(f'LYNCEUS_PARAMS="$(f=$(mktemp) && printf %s {values} > "$f" && echo "$f")"')
    if _reads(command, "LYNCEUS_RESULT"):
        found.append("LYNCEUS_RESULT=/dev/null")
    if _reads(command, "LYNCEUS_SCRATCH"):
        found.append('LYNCEUS_SCRATCH="$(mktemp -d)"')
    return found


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
    """Parameters whose values replace `${name}` in the command itself."""
    if isinstance(command.run, str):
        return set(PLACEHOLDER.findall(command.run)) if command.shell else set()
    return {name for text in command.run for name in PLACEHOLDER.findall(text)}


def _reads(command: JobCommand, name: str) -> bool:
    """Whether a command reads a variable, as far as its text tells."""
    if not isinstance(command.run, str):
        return any(re.search(rf"\b{re.escape(name)}\b", PLACEHOLDER.sub("", text)) for text in command.run)
    if command.shell:  # where values replace `${name}`
        return re.search(rf"\$\{{?{re.escape(name)}\b", PLACEHOLDER.sub("", command.run)) is not None
    return re.search(rf"\b{re.escape(name)}\b", command.run) is not None
