"""The command line of a configuration, for users to copy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from lynceus.executors.command import shown, variable
from lynceus.executors.placeholders import as_text
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.job import Job


def command_line(job: Job, params: Mapping[str, object]) -> str:
    """What a user types to run a configuration by hand; values are quoted."""
    script = job.command
    if not isinstance(script, str) or job.spec.shell:
        return shown(job_command(job, {}), params)
    variables = []
    for name, value in params.items():
        for key in (name, variable(name)):
            if re.search(rf"\b{re.escape(key)}\b", script):
                variables.append(f"{key}={shlex.quote(as_text(value))}")
    if script.startswith("#!"):
        return " ".join([*variables, with_interpreter(script)])
    return " ".join([*variables, "sh -e -c", shlex.quote(script.strip())])


def with_interpreter(script: str) -> str:
    """A command line for a script with an interpreter line (`#!`), which works only in a file."""
    steps = 'f=$(mktemp) && printf "%s\\n" "$1" > "$f" && chmod +x "$f" && "$f"; e=$?; rm -f "$f"; exit $e'
    return f"sh -c {shlex.quote(steps)} sh {shlex.quote(script.rstrip())}"
