"""The section `executor` of a job file for Ray, and the resources of each configuration. `${column}` is replaced by a value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field, field_validator

from lynceus.errors import InputError
from lynceus.executors.placeholders import check_column, fill, names_in, row_values
from lynceus.executors.resources import Resources
from lynceus.problem.fields import Duration, Section
from lynceus.space.table import Space

_GIB = 1 << 30
_MAX_CHECKED_ROWS = 2000
"""How many configurations are checked when a job file is read."""


class RayOptions(Section):
    """A Ray cluster, and the resources of a trial on it."""

    address: str = Field(
        default="auto", description="auto (the cluster of this machine), HOST:PORT, or ray://HOST:PORT"
    )
    num_cpus: float | str | None = Field(default=None, description="CPUs per node, a number or ${column}; 1 by default")
    num_gpus: float | str | None = Field(default=None, description="GPUs per node, a number or ${column}")
    memory: float | str | None = Field(default=None, description="memory per node in GiB, a number or ${column}")
    resources: dict[str, float | str] = Field(
        default={}, description='custom resources per node, for example {"${vm}": 1}'
    )
    num_nodes: int | str | None = Field(
        default=None, description="nodes per trial, a number or ${column}; the column num_nodes by default, otherwise 1"
    )
    each_node: bool = Field(
        default=True,
        description="with several nodes: run the command on each of them (true), or on the first only (false)",
    )
    job_uses_ray: bool = Field(
        default=False, description="the job starts Ray tasks itself; they use the resources of the trial"
    )
    limit: bool = Field(
        default=False,
        description="limit the job to its num_cpus and memory with control groups, as on the local machine",
    )
    workdir: Literal["ship", "shared"] = Field(
        default="ship",
        description="ship: copy the working directory to the nodes; shared: all nodes have it at the same path",
    )
    exclude: list[str] = Field(default=[], description="patterns of files that are not copied, such as '*.csv'")
    node_folder: str | None = Field(default=None, description="the folder on the nodes for the files of running trials")
    capacity_wait: Duration = Field(
        default=600.0, description="how long a trial waits if no node of the cluster is large enough for it"
    )
    patience: Duration = Field(
        default=900.0, description="how long the cluster may be unreachable before the study stops with an error"
    )

    @field_validator("address")
    @classmethod
    def _valid_address(cls, value: str) -> str:
        if value != "auto" and not re.fullmatch(r"(ray://)?[^\s:/]+:\d+", value):
            raise ValueError(f"got {value!r}; expected auto, HOST:PORT or ray://HOST:PORT.")
        return value

    @field_validator("node_folder")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"got {value!r}; expected an absolute path on the nodes.")
        return value

    def columns(self) -> list[tuple[str, str]]:
        """(field, column) pairs of all `${column}`."""
        texts = [
            ("num_cpus", self.num_cpus),
            ("num_gpus", self.num_gpus),
            ("memory", self.memory),
            ("num_nodes", self.num_nodes),
            *(("resources", text) for item in self.resources.items() for text in item),
        ]
        return [(field, name) for field, text in texts for name in names_in(text)]


def check_options(options: RayOptions, space: Space) -> None:
    """Raise `InputError` for columns that do not exist, and for invalid amounts."""
    for field, name in options.columns():
        check_column(name, space, field)
    for row in range(min(len(space), _MAX_CHECKED_ROWS)):
        bundles(options, space, row)


def bundles(
    options: RayOptions, space: Space, row: int, resources: Callable[[int], Resources] | None = None
) -> list[dict[str, float]]:
    """The resources of a trial: one bundle per node."""
    point = row_values(space, row)
    defaults = Resources() if resources is None else resources(row)
    nodes = options.num_nodes if options.num_nodes is not None else point.get("num_nodes", 1)
    count = _amount(nodes, point, "num_nodes")
    if count < 1 or count != int(count):
        raise InputError(
            f"num_nodes: got {count:g} for {_describe(space, row)}; expected a whole number of at least 1."
        )
    each: dict[str, float] = {}
    cpus = options.num_cpus if options.num_cpus is not None else defaults.cpus if defaults.cpus is not None else 1
    each["CPU"] = _amount(cpus, point, "num_cpus")
    each["GPU"] = _amount(options.num_gpus or 0, point, "num_gpus")
    if options.memory is not None:
        each["memory"] = math.ceil(_amount(options.memory, point, "memory") * _GIB)
    elif defaults.memory_bytes is not None:
        each["memory"] = defaults.memory_bytes
    for name, amount in options.resources.items():
        each[fill(name, point)] = _amount(amount, point, f"resources: {name}")
    each = {name: amount for name, amount in each.items() if amount}
    if not each:
        raise InputError(f"a trial requests no resources for {_describe(space, row)}; set num_cpus or resources.")
    return [dict(each) for _ in range(int(count))]


def _amount(value: object, point: Mapping[str, object], field: str) -> float:
    text = fill(value, point) if isinstance(value, str) else value
    try:
        amount = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{field}: got {text!r}; expected a number.") from None
    if not (math.isfinite(amount) and amount >= 0):
        raise InputError(f"{field}: got {amount}; expected a finite number of at least 0.")
    return amount


def _describe(space: Space, row: int) -> str:
    return ", ".join(f"{name}={value}" for name, value in space.point(row).items())
