"""What a job file says about Slurm; `${column}` stands for a value of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from lynceus.document import Duration, Section
from lynceus.errors import InputError
from lynceus.executor.command import as_text, filled
from lynceus.space import Space
from lynceus.space.column import nearest

_PLACE = re.compile(r"\$\{([^{}]*)\}")
_MEMORY = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(?:([KMGT])(?:i?B)?)?\s*", re.IGNORECASE | re.ASCII)
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}

CHOSEN = {
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
"""Options that a configuration may choose, and what `sbatch` calls them."""
_OURS = ("--job-name", "-J", "--comment", "--output", "-o", "--error", "-e", "--time", "-t", "--export", "--export-file", "--chdir", "-D",
         "--requeue", "--no-requeue", "--parsable", "--array", "-a", "--wrap", "--wait", "-W", "--test-only", "--hold", "-H")  # fmt: skip
"""What must not stand in `extra`: the executor itself depends on it."""

Value = str | int | float | None


class SlurmOptions(Section):
    """Which part of the cluster a trial gets, and how patient we are with the cluster."""

    partition: Value = Field(
        default=None, description="the partition; ${column} stands for a value of the configuration, here and below"
    )
    account: Value = Field(default=None, description="the account that is billed")
    qos: Value = Field(default=None, description="the quality of service")
    reservation: Value = Field(default=None, description="a reservation")
    constraint: Value = Field(default=None, description="features that nodes must have, such as '${instance_type}'")
    nodes: Value = Field(default=None, description="how many nodes")
    tasks: Value = Field(default=None, description="how many tasks srun starts in all")
    tasks_per_node: Value = Field(default=None, description="how many tasks srun starts on a node")
    cpus: Value = Field(default=None, description="processors of a task; by default those of 'resources'")
    memory: Value = Field(
        default=None, description="memory of a node: 4 GB, or GiB as a number; by default that of 'resources'"
    )
    gpus: Value = Field(default=None, description="GPUs in all, such as 2 or 'a100:2'")
    exclusive: bool = Field(default=False, description="whether nodes are shared with nobody")
    extra: list[str] = Field(default=[], description="further arguments of sbatch, such as --mail-type=FAIL")
    python: str = Field(
        default="python3", description="a Python of version 3.8 or later on the nodes; it runs the supervisor"
    )
    poll: Duration = Field(default=2.0, description="time between two questions to the controller")
    max_queue: Duration | None = Field(
        default=None, description="a trial that waits longer in the queue is given up, and tried again"
    )
    patience: Duration = Field(
        default=900.0, description="how long to retry when the controller is away or refuses for the moment"
    )

    @field_validator("extra")
    @classmethod
    def _not_ours(cls, value: list[str]) -> list[str]:
        for word in value:
            name = word.partition("=")[0]
            if not word.startswith("-"):
                raise ValueError(
                    f"{word!r} is no argument of its own: write options in one piece, such as --mail-type=FAIL."
                )
            if name in _OURS:
                raise ValueError(f"{name} is set by Lynceus itself: remove it.")
        return value

    @field_validator("poll")
    @classmethod
    def _some_time(cls, value: float) -> float:
        if value <= 0:
            raise ValueError("the controller cannot be asked all the time: give a duration above 0, such as 2s.")
        return value


def check_options(options: SlurmOptions, space: Space) -> None:
    """Refuse `${name}` of columns that do not exist, and amounts that some configuration makes impossible."""
    texts = {name: getattr(options, name) for name in CHOSEN} | {"extra": " ".join(options.extra)}
    for field, text in texts.items():
        for name in _PLACE.findall(text) if isinstance(text, str) else ():
            if name not in space.columns:
                hint = nearest(name, space.columns) or f" Columns are {', '.join(space.columns)}."
                raise InputError(f"{field}: ${{{name}}} names no column of the space.{hint}")
    for row in range(len(space)):
        chosen(options, row_values(space, row))


def row_values(space: Space, row: int) -> dict[str, object]:
    """Every column of a configuration, as plain values."""
    return {
        name: column[row].item() if hasattr(column[row], "item") else column[row]
        for name, column in space.columns.items()
    }


def chosen(options: SlurmOptions, values: Mapping[str, object]) -> dict[str, str]:
    """What a configuration asks of Slurm, by field; a field whose parameter is inactive is left out."""
    found = {}
    for field in CHOSEN:
        text = getattr(options, field)
        if text is None:
            continue
        alone = _PLACE.fullmatch(text) if isinstance(text, str) else None
        if alone is not None and values.get(alone[1]) is None:
            continue
        word = filled(text, values) if isinstance(text, str) else as_text(text)
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
        raise InputError(f"{field}: {word!r} came, but a whole number from 1 on is needed.")
    return str(int(number))


def _mebibytes(word: str) -> str:
    """Memory as sbatch reads it; a number alone is GiB.

    >>> _mebibytes("1.5"), _mebibytes("512 MB")
    ('1536M', '512M')
    """
    matched = _MEMORY.fullmatch(word)
    if matched is None or not float(matched[1]):
        raise InputError(f"memory: {word!r} came, but an amount such as 4 GB is needed.")
    return f"{max(round(float(matched[1]) * _MIB[(matched[2] or 'G').upper()]), 1)}M"
