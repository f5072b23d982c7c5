"""The environment variables that pass parameters to a job: which names are refused, and which in a script look misspelt."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from lynceus.errors import InputError
from lynceus.executors.command import is_reserved, variable
from lynceus.executors.serve import NAMES
from lynceus.jobfile.job import Job
from lynceus.space.table import Space
from lynceus.trial.text import clean_line

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_LONGEST_NAME = 100
_SHELL_WORD = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|\\.|(?<!\S)#[^\n]*', re.DOTALL)
"""What a shell reads as one piece: strings, escaped characters, comments."""
_USE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
"""`${name}` or `$name`; not `${name:-default}`, whose author knows that it may be unset."""
_ELSEWHERE = re.compile(r"(?m)(?:^|[;&|({]|\b(?:then|do|else)\b)\s*(?:\.|source|eval)\s")
"""Commands that may set any variable."""
_BARE = re.compile(r"(?<![\w$\-./{])[A-Za-z_]\w*", re.ASCII)
"""A word that is neither `$name` nor part of an option or a path."""
_CLOSE = 0.8


def check_parameter_names(job: Job, space: Space) -> None:
    """Refuse names that cannot become variables of a job, or whose values would get lost among others."""
    names = [parameter.name for parameter in space.parameters]
    owner: dict[str, str] = {}
    for name in names:
        with job.at(*(("space", name) if name in job.spec.space else ("resources",))):
            if clean_line(name, _LONGEST_NAME) != name:
                raise InputError(
                    f"its name is not one line of at most {_LONGEST_NAME} printable characters; choose another name."
                )
            first = owner.setdefault(variable(name), name)
            if first != name:
                raise InputError(
                    f"{name!r} and {first!r} would share the variable {variable(name)} of the job; rename one of them."
                )
            if job.spec.serve is not None and name in NAMES:
                raise InputError(f"serve sets ${{{name}}} for every trial; choose another name, such as 'my_{name}'.")
            if isinstance(_command(job), str) and is_reserved(name):
                raise InputError(
                    f"a script needs the variable {name} for itself; choose another name, such as 'my_{name.lower()}'."
                )
    for section, variables in (("envs", job.spec.envs), ("secrets", job.spec.secrets)):
        _check_taken(job, section, variables, owner, names)


def _check_taken(
    job: Job, section: str, variables: Mapping[str, str], owner: Mapping[str, str], names: list[str]
) -> None:
    """Refuse variables in `envs` and `secrets` that parameters set, too."""
    for name, text in variables.items():
        with job.at(section, name):
            if name in owner:
                raise InputError(f"the parameter {owner[name]!r} sets this variable; choose another name for it.")
            same = section == "envs" and text == f"${{{name}}}"
            if isinstance(_command(job), str) and name in names and not same:
                raise InputError(
                    f"the parameter {name!r} sets the variable of that name in a script; rename one of them."
                )


def misspelt_variables(job: Job, space: Space) -> list[str]:
    """Notes about variables of a script that nothing sets and that are almost called like a parameter.

    A name that occurs anywhere without `$`, as in `name=1` or `read name`, counts as set by the script itself.
    """
    script = _command(job)
    if not isinstance(script, str) or not _is_for_shell(script) or _ELSEWHERE.search(script):
        return []
    known = {parameter.name: None for parameter in space.parameters}
    given = {
        *known,
        *(NAMES if job.spec.serve is not None else ()),
        *job.spec.envs,
        *job.spec.secrets,
        *map(variable, known),
        *os.environ,
    }
    notes = []
    bare = set(_BARE.findall(script))
    for name in dict.fromkeys(_uses(script)):
        if name in given or name in bare:
            continue
        target = name.removeprefix("LYNCEUS_PARAM_").lower() if name.startswith("LYNCEUS_PARAM_") else name
        close = difflib.get_close_matches(target, known, n=1, cutoff=_CLOSE)
        if close:
            meant = variable(close[0]) if name.startswith("LYNCEUS_PARAM_") else close[0]
            notes.append(
                f"{'.'.join(job.command_field)}: nothing sets the variable {name} of the script. Did you mean '{meant}'?"
            )
    return notes


def _command(job: Job) -> str | tuple[str, ...] | None:
    return job.command if job.has_command else None


def _is_for_shell(script: str) -> bool:
    first, _, _ = script.partition("\n")
    if not first.startswith("#!"):
        return True
    return any(PurePosixPath(word).name in SHELLS for word in first[2:].split()[:2])


def _uses(script: str) -> Iterator[str]:
    """The variables that a script reads outside single quotes and comments."""
    text = _SHELL_WORD.sub(lambda found: found[0] if found[0].startswith('"') else " ", script)
    for match in _USE.finditer(text):
        yield match[1] or match[2]
