"""The section `executor` of a job file for SkyPilot, and the resources of each configuration."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from lynceus.errors import InputError
from lynceus.executors.placeholders import PLACEHOLDER, as_text, check_column, row_values
from lynceus.executors.resources import Resources
from lynceus.problem.fields import Duration, Section
from lynceus.space.table import Space

_RESERVED = ("workdir", "run", "setup", "name", "num_nodes", "resources", "envs", "secrets")
"""Fields of a SkyPilot task that Lynceus sets from the rest of the job file."""


class SkyPilotOptions(Section):
    """Where SkyPilot is installed, which machines it starts, and how long they stay warm."""

    python: str = Field(default="", description="the Python of SkyPilot's environment")
    api_server: str = Field(
        default="", description="address of SkyPilot's API server; by default the one that SkyPilot is configured for"
    )
    resources: dict[str, Any] = Field(
        default_factory=dict,
        description="resources of a SkyPilot task; ${column} is replaced by a value of the configuration",
    )
    num_nodes: int | str = Field(default=1, description="nodes per cluster; ${column} is replaced by a value")
    task: dict[str, Any] = Field(
        default_factory=dict, description="further fields of a SkyPilot task: config, file_mounts, volumes"
    )
    workdir: bool = Field(default=True, description="copy the job's workdir to the cluster")
    keep_warm: Duration = Field(
        default=0.0, description="how long an idle cluster waits for the next trial that needs the same machines"
    )
    dead_man: Duration = Field(
        default=600.0, description="an idle cluster takes itself down after this time, even if Lynceus is gone"
    )
    patience: Duration = Field(
        default=900.0,
        description="how long to retry while there is no capacity, a quota is exhausted or the API server is unreachable",
    )

    @property
    def idle_minutes(self) -> int:
        """After how many idle minutes a cluster takes itself down: later than Lynceus would do it."""
        return max(math.ceil(max(self.dead_man, self.keep_warm + 120.0) / 60.0), 1)


def python_of(options: SkyPilotOptions, folder: Path) -> Path:
    """The interpreter that the job file names, or else that of `.venv-skypilot` in the folder or the current one, or else that of `sky`."""
    path = Path(os.path.expanduser(options.python or ".venv-skypilot/bin/python"))
    candidates = [base / path for base in (folder.absolute(), Path.cwd())]
    found = next((one for one in candidates if one.exists()), None)
    if found is not None or options.python:
        return found or candidates[0]
    program = shutil.which("sky")
    return Path(program).parent / "python" if program else candidates[-1]


def not_found() -> str:
    """What to do where SkyPilot is in none of the places in which it is looked for when the job file names none; else empty."""
    if python_of(SkyPilotOptions(), Path.cwd()).exists():
        return ""
    return "SkyPilot was not found: install it in .venv-skypilot here, put sky on the PATH, or give executor.python"


def check_options(options: SkyPilotOptions, space: Space) -> None:
    """Raise `InputError` for `${name}` that is not a column, and for fields that Lynceus sets."""
    for name in options.task:
        if name in _RESERVED:
            raise InputError(f"executor.task.{name}: Lynceus sets this from the rest of the job file; remove it here.")
    for field in ("resources", "num_nodes", "task"):
        for name in _placeholders(getattr(options, field)):
            check_column(name, space, f"executor.{field}")


def machines(
    options: SkyPilotOptions, space: Space, row: int, resources: Callable[[int], Resources] | None
) -> tuple[dict[str, Any], int]:
    """Resources and number of nodes of a configuration, as in a SkyPilot task.

    `executor.resources` of the job file takes precedence, then columns from a machine catalog, then `resources`.
    """
    values = row_values(space, row)
    found: dict[str, Any] = {}
    defaults = Resources() if resources is None else resources(row)
    if "instance_type" in values:
        found = {name: values[name] for name in ("infra", "instance_type", "use_spot") if values.get(name) is not None}
    else:
        if defaults.cpus is not None:
            found["cpus"] = defaults.cpus
        if defaults.memory_bytes is not None:
            found["memory"] = defaults.memory_bytes / (1 << 30)
    found |= _fill(options.resources, values)
    nodes: Any = _fill(options.num_nodes, values)
    if options.num_nodes == 1 and "num_nodes" in values:
        nodes = values["num_nodes"]
    return found, int(nodes)


def task_fields(options: SkyPilotOptions, space: Space, row: int) -> dict[str, Any]:
    """Further fields of the task, with the values of a configuration."""
    values = row_values(space, row)
    fields: dict[str, Any] = _fill(options.task, values)
    return fields


def _fill(part: Any, values: Mapping[str, Any]) -> Any:
    """A part of a document with values in place of `${column}`; a text that consists of one `${column}` keeps the value's type."""
    if isinstance(part, dict):
        return {key: _fill(one, values) for key, one in part.items()}
    if isinstance(part, list):
        return [_fill(one, values) for one in part]
    if not isinstance(part, str):
        return part
    whole = PLACEHOLDER.fullmatch(part)
    if whole is not None:
        return values[whole[1]]
    return PLACEHOLDER.sub(lambda match: as_text(values[match[1]]), part)


def _placeholders(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [name for one in part.values() for name in _placeholders(one)]
    if isinstance(part, list):
        return [name for one in part for name in _placeholders(one)]
    return PLACEHOLDER.findall(part) if isinstance(part, str) else []
