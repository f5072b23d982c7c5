"""From a configuration to a command: values travel as arguments, environment and a JSON file, byte for byte, never through a shell.

Only with `shell` is a value put into a shell's text, and then quoted.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.supervisor.files import PARAMS
from lynceus.supervisor.tree import RUN_VARIABLE

_PLACE = re.compile(r"\$\{([A-Za-z_][\w.\-]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
SCRIPT = "script"
"""The file in a run directory that holds a job which is a script."""


@dataclass(frozen=True)
class LocalJob:
    """What to run on this machine, for every configuration alike."""

    run: tuple[str, ...] | str
    """An argv list, or a script. `${name}` in an element of the list is replaced by the parameter's value."""
    shell: bool = False
    """Whether `${name}` in a script is replaced by the quoted value; otherwise a script finds values in its environment."""
    workdir: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of this process; `${name}` in a value is replaced by the parameter's value."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Like `env`, but never written down; their values are hidden in the output."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metric → regular expression with one group, searched in every line of output; the last match counts."""
    grace_s: float = 5.0
    """Seconds between SIGTERM and SIGKILL. They are not charged: choose them short."""
    output_bytes: int = 1 << 20
    """How much of each stream is kept: half of it from the beginning, half from the end."""

    def __post_init__(self) -> None:
        if not self.run or (not isinstance(self.run, str) and not self.run[0]):
            raise InputError("run: there is no command; give an argv list such as [python, train.py], or a script.")
        if self.shell and not isinstance(self.run, str):
            raise InputError("run: 'shell: true' needs a script, not a list; write the command as one text.")
        if self.grace_s < 0 or self.output_bytes < 1:
            raise InputError("trial: grace must not be negative, and at least 1 byte of output is kept.")
        for name, pattern in self.metrics.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise InputError(f"metrics: the expression of {name!r} cannot be read: {error}.") from None
            if groups != 1:
                raise InputError(
                    f"metrics: the expression of {name!r} has {groups} groups; put (…) around the number, once."
                )


def as_text(value: object) -> str:
    """A parameter's value as a job reads it.

    >>> as_text(True), as_text(4), as_text(0.1), as_text("a b")
    ('true', '4', '0.1', 'a b')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, float) else str(value)
    if "\0" in text:
        raise InputError(
            f"A parameter's value {text!r} holds a NUL byte, which no argument and no variable can carry; remove it."
        )
    return text


def variable(name: str) -> str:
    """The environment variable of a parameter.

    >>> variable("batch-size")
    'LYNCEUS_PARAM_BATCH_SIZE'
    """
    return "LYNCEUS_PARAM_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def arguments(job: LocalJob, params: Mapping[str, object], directory: Path) -> tuple[list[str], bool]:
    """The argv of a run, and whether its last element names a script in the run's directory, which is written now.

    >>> arguments(LocalJob(("train", "--lr=${lr}", "$(reboot)")), {"lr": 0.1}, Path())
    (['train', '--lr=0.1', '$(reboot)'], False)
    """
    if not isinstance(job.run, str):
        return [filled(element, params) for element in job.run], False
    if job.shell:
        return ["/bin/sh", "-c", filled(job.run, params, quote=True)], False
    script = directory / SCRIPT
    script.write_text(job.run, encoding="utf-8", errors="surrogateescape")
    first, _, _ = job.run.partition("\n")
    if first.startswith("#!"):
        script.chmod(0o755)
        return [SCRIPT], True
    return ["/bin/sh", "-e", SCRIPT], True


def shown(job: LocalJob, params: Mapping[str, object]) -> str:
    """The command line of a configuration, for people to copy.

    >>> shown(LocalJob(("sort", "--parallel=${threads}", "my file")), {"threads": 4})
    "sort --parallel=4 'my file'"
    """
    if isinstance(job.run, str):
        values = " ".join(f"{variable(name)}={shlex.quote(as_text(value))}" for name, value in params.items())
        return filled(job.run, params, quote=True).strip() if job.shell else f"{values} {job.run.strip()}"
    return shlex.join(filled(element, params) for element in job.run)


def environment(job: LocalJob, request: Mapping[str, Any], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a run, from what `request.json` says; the supervisor adds the paths of parameters and results.

    `base` is what the job's variables are laid over: ours, or nothing for a node that has an environment of its own. Scripts also find
    every value under the parameter's own name, where that is free.
    """
    params: Mapping[str, object] = request["params"]
    added = {name: filled(text, params) for name, text in job.env.items()}
    given = {**base, **added, **job.secrets}
    values = {name: as_text(value) for name, value in params.items()}
    taken = given.keys() | os.environ.keys()
    plain = {name: text for name, text in values.items() if _NAME.fullmatch(name) and name not in taken}
    return {
        **given,
        **(plain if isinstance(job.run, str) else {}),
        **{variable(name): text for name, text in values.items()},
        "LYNCEUS_STUDY": request["study"],
        "LYNCEUS_TRIAL": str(request["number"]),
        RUN_VARIABLE: request["run"],
    }


def write_params(params: Mapping[str, object], directory: Path) -> None:
    """The values as JSON, with their types."""
    (directory / PARAMS).write_text(json.dumps(dict(params)), encoding="utf-8")


def unknown_places(job: LocalJob, names: set[str]) -> list[str]:
    """Placeholders that no parameter fills; in a script without `shell` they are the shell's own business."""
    if isinstance(job.run, str) and not job.shell:
        return []
    texts = [job.run] if isinstance(job.run, str) else job.run
    return [name for text in texts for name in _PLACE.findall(text) if name not in names]


def filled(text: str, params: Mapping[str, object], *, quote: bool = False) -> str:
    """A text with the values of a configuration in place of `${name}`."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in params:
            return match.group(0)
        word = as_text(params[name])
        return shlex.quote(word) if quote else word

    return _PLACE.sub(value, text)
