"""A note where nothing that a trial runs names a parameter: every configuration would do the same."""

from __future__ import annotations

import re
from contextlib import suppress

from lynceus.errors import InputError
from lynceus.executors.command import variable
from lynceus.jobfile.job import Job
from lynceus.space.table import Space
from lynceus.space.user_file import read_file

_PREFIX = variable("")
"""With which the variables of parameters begin."""
_LONGEST_PROGRAM = 1 << 20


def unused_notes(job: Job, space: Space) -> list[str]:
    """The note, unless parameters choose machines. Files of the working directory that the command names are read, too."""
    spec = job.spec
    if spec.run is None or spec.executor.kind != "local" or job.machines is not None or not space.parameters:
        return []
    words = spec.run.split() if isinstance(spec.run, str) else list(spec.run)
    texts = [
        " ".join(words),
        *spec.envs.values(),
        str(spec.setup),
        str(spec.resources.model_dump(exclude_defaults=True)),
    ]
    texts += [_file_text(job, word) for word in words]
    names = "|".join(re.escape(parameter.name) for parameter in space.parameters)
    named = re.compile(rf"{_PREFIX}|(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])")
    if any(named.search(text) for text in texts):
        return []
    first = space.parameters[0].name
    return [
        f"run: it names no parameter, so all configurations do the same, unless the program reads variables such as {variable(first)}; "
        f'write for example "${{{first}}}".'
    ]


def _file_text(job: Job, word: str) -> str:
    """What a file of the working directory says that the command names; empty where there is none."""
    with suppress(OSError, ValueError, InputError):
        return read_file(job.workdir / word.strip("'\""), _LONGEST_PROGRAM).decode("utf-8", "replace")
    return ""
