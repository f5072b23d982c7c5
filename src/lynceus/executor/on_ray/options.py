"""What `executor: {kind: ray, …}` may say, and the resources that follow for a configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from lynceus.document import Duration, Section
from lynceus.errors import InputError
from lynceus.executor.command import filled
from lynceus.executor.shape import Shape
from lynceus.space import Space
from lynceus.space.column import nearest

_PLACE = re.compile(r"\$\{([^}]*)\}")
_GIB = 1 << 30
_MOST_ROWS = 2000
"""How many configurations are tried out when a job file is checked."""


class RayOptions(Section):
    """A Ray cluster, and what a trial takes of it."""

    address: str = Field(
        default="auto", description="auto (the cluster of this machine), HOST:PORT, or ray://HOST:PORT from anywhere"
    )
    num_cpus: float | str | None = Field(
        default=None, description="cores per node, a number or ${column}; 1 by default"
    )
    num_gpus: float | str | None = Field(default=None, description="GPUs per node, a number or ${column}")
    memory: float | str | None = Field(default=None, description="GiB per node that Ray sets aside, or ${column}")
    resources: dict[str, float | str] = Field(
        default={}, description='custom resources per node, for example {"${vm}": 1}'
    )
    num_nodes: int | str | None = Field(
        default=None, description="nodes of a trial, a number or ${column}; the column num_nodes by default, else 1"
    )
    each_node: bool = Field(
        default=True, description="with several nodes: run the command on each (true), or on the first only (false)"
    )
    job_uses_ray: bool = Field(
        default=False, description="the job starts Ray tasks itself: they get what the trial has set aside"
    )
    limit: bool = Field(
        default=False,
        description="hold the job to its num_cpus and memory with control groups, as on the local machine",
    )
    workdir: Literal["ship", "shared"] = Field(
        default="ship",
        description="ship: send the working directory along; shared: every node sees it at the same path",
    )
    exclude: list[str] = Field(default=[], description="patterns of files that are not shipped, such as '*.csv'")
    node_folder: str | None = Field(default=None, description="where nodes keep a run's files while it runs")
    capacity_wait: Duration = Field(
        default=600.0, description="how long a trial may wait when no node of the cluster is large enough for it"
    )
    patience: Duration = Field(
        default=900.0, description="how long the cluster may be out of reach before the study stops and says so"
    )

    @field_validator("address")
    @classmethod
    def _somewhere(cls, value: str) -> str:
        if value != "auto" and not re.fullmatch(r"(ray://)?[^\s:/]+:\d+", value):
            raise ValueError(f"{value!r} came: write auto, HOST:PORT or ray://HOST:PORT.")
        return value

    @field_validator("node_folder")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"{value!r} came: nodes need an absolute path.")
        return value

    def places(self) -> list[str]:
        """The columns that `${…}` speaks of."""
        texts = [self.num_cpus, self.num_gpus, self.memory, self.num_nodes, *self.resources, *self.resources.values()]
        return [name for text in texts if isinstance(text, str) for name in _PLACE.findall(text)]


def check(options: RayOptions, space: Space) -> None:
    """Refuse columns that do not exist, and amounts that are none."""
    for name in options.places():
        if name not in space.columns:
            hint = nearest(name, space.columns) or f" Columns are {', '.join(space.columns)}."
            raise InputError(f"${{{name}}} is no column of the space.{hint}")
    for row in range(min(len(space), _MOST_ROWS)):
        bundles(options, space, row)


def bundles(
    options: RayOptions, space: Space, row: int, shape: Callable[[int], Shape] | None = None
) -> list[dict[str, float]]:
    """What a trial takes: one bundle of resources per node."""
    point = {name: _plain(column[row]) for name, column in space.columns.items()}
    said = Shape() if shape is None else shape(row)
    nodes = options.num_nodes if options.num_nodes is not None else point.get("num_nodes", 1)
    count = _amount(nodes, point, "num_nodes")
    if count < 1 or count != int(count):
        raise InputError(f"num_nodes is {count:g} for {_words(space, row)}; give a whole number of at least 1.")
    each: dict[str, float] = {}
    cpus = options.num_cpus if options.num_cpus is not None else said.cpus if said.cpus is not None else 1
    each["CPU"] = _amount(cpus, point, "num_cpus")
    each["GPU"] = _amount(options.num_gpus or 0, point, "num_gpus")
    if options.memory is not None:
        each["memory"] = math.ceil(_amount(options.memory, point, "memory") * _GIB)
    elif said.memory_bytes is not None:
        each["memory"] = said.memory_bytes
    for name, amount in options.resources.items():
        each[filled(name, point)] = _amount(amount, point, f"resources: {name}")
    each = {name: amount for name, amount in each.items() if amount}
    if not each:
        raise InputError(f"a trial takes nothing of the cluster for {_words(space, row)}; give num_cpus or a resource.")
    return [dict(each) for _ in range(int(count))]


def _amount(value: object, point: Mapping[str, object], field: str) -> float:
    text = filled(value, point) if isinstance(value, str) else value
    try:
        amount = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{field} becomes {text!r}; a number is needed.") from None
    if not (math.isfinite(amount) and amount >= 0):
        raise InputError(f"{field} becomes {amount}; it must not be negative or infinite.")
    return amount


def _plain(value: Any) -> object:
    return value.item() if hasattr(value, "item") else value


def _words(space: Space, row: int) -> str:
    return ", ".join(f"{name}={value}" for name, value in space.point(row).items())
