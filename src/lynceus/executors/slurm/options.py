"""The section `executor` of a job file for Slurm. `${column}` is replaced by a value of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from lynceus.errors import InputError
from lynceus.executors.placeholders import as_text, check_column, fill, names_in, row_values
from lynceus.problem.fields import Duration, Section
from lynceus.space.table import Space

_MEMORY = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(?:([KMGT])(?:i?B)?)?\s*", re.IGNORECASE | re.ASCII)
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}

SBATCH_OPTIONS = {
    "partition": "--partition",
    "account": "--account",
    "qos": "--qos",
    "reservation": "--reservation",
    "constraint": "--constraint",
    "nodes": "--nodes",
    "tasks": "--ntasks",
    "tasks_per_node": "--ntasks-per-node",
    "cpus": "--cpus-per-task",
    "memory": "--mem",
    "gpus": "--gpus",
}
"""Fields that may depend on the configuration, and the options of `sbatch` that they set."""
_RESERVED = (
    *("--job-name", "-J", "--comment", "--output", "-o", "--error", "-e", "--time", "-t", "--export", "--export-file"),
    *("--chdir", "-D", "--requeue", "--no-requeue", "--parsable", "--array", "-a", "--wrap", "--wait", "-W"),
    *("--test-only", "--hold", "-H"),
)
"""Options that `extra` must not contain, because the executor sets them."""

Value = str | int | float | None


class SlurmOptions(Section):
    """What a trial requests of the cluster, and how long to wait for it."""

    partition: Value = Field(
        default=None, description="the partition; here and below, ${column} is replaced by a value of the configuration"
    )
    account: Value = Field(default=None, description="the account that is billed")
    qos: Value = Field(default=None, description="the quality of service")
    reservation: Value = Field(default=None, description="a reservation")
    constraint: Value = Field(default=None, description="features that nodes must have, such as '${instance_type}'")
    nodes: Value = Field(default=None, description="number of nodes")
    tasks: Value = Field(default=None, description="number of tasks that srun starts")
    tasks_per_node: Value = Field(default=None, description="number of tasks that srun starts on each node")
    cpus: Value = Field(default=None, description="CPUs of a task; those of 'resources' by default")
    memory: Value = Field(
        default=None, description="memory of a node, such as 4 GB, or a number of GiB; that of 'resources' by default"
    )
    gpus: Value = Field(default=None, description="number of GPUs, such as 2 or 'a100:2'")
    exclusive: bool = Field(default=False, description="do not share nodes with other jobs")
    extra: list[str] = Field(default=[], description="further options of sbatch, such as --mail-type=FAIL")
    python: str = Field(
        default="python3", description="a Python of version 3.8 or later on the nodes; it runs the supervisor"
    )
    poll: Duration = Field(default=2.0, description="time between two requests to the controller")
    max_queue: Duration | None = Field(
        default=None, description="a trial that waits longer in the queue is cancelled and retried"
    )
    patience: Duration = Field(
        default=900.0, description="how long to retry while the controller is down or refuses the job"
    )

    @field_validator("extra")
    @classmethod
    def _not_reserved(cls, value: list[str]) -> list[str]:
        for word in value:
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            if not re.fullmatch("-[A-Za-z]|--[a-z][a-z0-9-]+", name):
                raise ValueError(f"got {word!r}; expected an option in one piece, such as --mail-type=FAIL.")
            # sbatch also takes the beginning of a name for the name.
            if name in _RESERVED or (name.startswith("--") and any(one.startswith(name) for one in _RESERVED)):
                raise ValueError(f"{name} is set by Lynceus: remove it.")
        return value

    @field_validator("poll")
    @classmethod
    def _positive(cls, value: float) -> float:
        if value <= 0:
            raise ValueError("give a duration above 0, such as 2s: the controller cannot be asked without a pause.")
        return value


def check_options(options: SlurmOptions, space: Space) -> None:
    """Raise `InputError` for `${name}` that is not a column, and for values that are invalid for some configuration."""
    texts = {name: getattr(options, name) for name in SBATCH_OPTIONS} | {"extra": " ".join(options.extra)}
    for field, text in texts.items():
        for name in names_in(text):
            check_column(name, space, field)
    for row in range(len(space)):
        requested(options, row_values(space, row))


def requested(options: SlurmOptions, values: Mapping[str, object]) -> dict[str, str]:
    """What a configuration requests of Slurm, by field; a field whose parameter is inactive is left out."""
    found = {}
    for field in SBATCH_OPTIONS:
        text = getattr(options, field)
        if text is None:
            continue
        names = names_in(text)
        if len(names) == 1 and text == f"${{{names[0]}}}" and values.get(names[0]) is None:
            continue
        word = fill(text, values) if isinstance(text, str) else as_text(text)
        if field == "memory":
            word = _mebibytes(word)
        elif field in ("nodes", "tasks", "tasks_per_node", "cpus"):
            word = _count(field, word)
        found[field] = word
    return found


def _count(field: str, word: str) -> str:
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if number < 1 or number != int(number):
        raise InputError(f"{field}: got {word!r}; expected a whole number of at least 1.")
    return str(int(number))


def _mebibytes(word: str) -> str:
    """Memory as sbatch reads it; a number without a unit is GiB.

    >>> _mebibytes("1.5"), _mebibytes("512 MB")
    ('1536M', '512M')
    """
    matched = _MEMORY.fullmatch(word)
    if matched is None or not float(matched[1]):
        raise InputError(f"memory: got {word!r}; expected an amount such as 4 GB.")
    return f"{max(round(float(matched[1]) * _MIB[(matched[2] or 'G').upper()]), 1)}M"
