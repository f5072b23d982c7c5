"""From a configuration to a command. Values reach the job as arguments, environment variables and a JSON file, never through a shell.

Only with `shell: true` are values inserted into a shell script, and then they are quoted.
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
from lynceus.executors.placeholders import as_text, fill
from lynceus.executors.supervisor.files import PARAMS
from lynceus.executors.supervisor.process_tree import RUN_VARIABLE

_NAME = re.compile(r"[A-Za-z_]\w*")
SCRIPT = "script"
"""The file in a run directory that holds a job which is a script."""


@dataclass(frozen=True)
class JobCommand:
    """What to run for every configuration."""

    run: tuple[str, ...] | str
    """An argv list, or a script. `${name}` in an element of the list is replaced by the parameter's value."""
    shell: bool = False
    """Whether `${name}` in a script is replaced by the quoted value; otherwise a script reads values from its environment."""
    workdir: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of this process; `${name}` in a value is replaced by the parameter's value."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Like `env`, but never written to disk; their values are masked in the output."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metric → regular expression with one group, searched in every line of output; the last match counts."""
    grace_s: float = 5.0
    """Seconds between SIGTERM and SIGKILL. They are not charged, so keep them short."""
    output_bytes: int = 1 << 20
    """How much of each stream is kept: half from the beginning, half from the end."""

    def __post_init__(self) -> None:
        if not self.run or (not isinstance(self.run, str) and not self.run[0]):
            raise InputError("run: there is no command; give an argv list such as [python, train.py], or a script.")
        if self.shell and not isinstance(self.run, str):
            raise InputError("run: 'shell: true' needs a script, not a list; write the command as one text.")
        if self.grace_s < 0 or self.output_bytes < 1:
            raise InputError("trial: grace must not be negative, and at least 1 byte of output must be kept.")
        for name, pattern in self.metrics.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise InputError(f"metrics: the expression of {name!r} cannot be read: {error}.") from None
            if groups != 1:
                raise InputError(
                    f"metrics: the expression of {name!r} has {groups} groups; put (…) around the number, once."
                )


def variable(name: str) -> str:
    """The environment variable of a parameter.

    >>> variable("batch-size")
    'LYNCEUS_PARAM_BATCH_SIZE'
    """
    return "LYNCEUS_PARAM_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def arguments(job: JobCommand, params: Mapping[str, object], directory: Path) -> tuple[list[str], bool]:
    """The argv of a run, and whether its last element names a script in the run directory. The script is written here.

    >>> arguments(JobCommand(("train", "--lr=${lr}", "$(reboot)")), {"lr": 0.1}, Path())
    (['train', '--lr=0.1', '$(reboot)'], False)
    """
    if not isinstance(job.run, str):
        return [fill(element, params) for element in job.run], False
    if job.shell:
        return ["/bin/sh", "-c", fill(job.run, params, quote=True)], False
    script = directory / SCRIPT
    script.write_text(job.run, encoding="utf-8", errors="surrogateescape")
    first, _, _ = job.run.partition("\n")
    if first.startswith("#!"):
        script.chmod(0o755)
        return [SCRIPT], True
    return ["/bin/sh", "-e", SCRIPT], True


def shown(job: JobCommand, params: Mapping[str, object]) -> str:
    """The command line of a configuration, to copy into a shell.

    >>> shown(JobCommand(("sort", "--parallel=${threads}", "my file")), {"threads": 4})
    "sort --parallel=4 'my file'"
    """
    if isinstance(job.run, str):
        values = " ".join(f"{variable(name)}={shlex.quote(as_text(value))}" for name, value in params.items())
        return fill(job.run, params, quote=True).strip() if job.shell else f"{values} {job.run.strip()}"
    return shlex.join(fill(element, params) for element in job.run)


def environment(job: JobCommand, request: Mapping[str, Any], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a run, given its `request.json`; the supervisor adds the paths of parameters and results.

    `base` is extended with the job's variables: our own environment, or an empty one for nodes that have their own. Scripts also get
    each value under the parameter's own name, unless a variable of that name exists.
    """
    params: Mapping[str, object] = request["params"]
    added = {name: fill(text, params) for name, text in job.env.items()}
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
    """Write the values as JSON, with their types."""
    (directory / PARAMS).write_text(json.dumps(dict(params)), encoding="utf-8")
