"""The section `executor` of a job file for SkyPilot, and the tasks that follow from it."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from lynceus.document import Duration, Section
from lynceus.errors import InputError
from lynceus.executor.command import _PLACE, as_text
from lynceus.executor.shape import Shape
from lynceus.space import Space
from lynceus.space.column import nearest

_OWN = ("workdir", "run", "setup", "name", "num_nodes", "resources", "envs", "secrets")
"""Fields of a SkyPilot task that follow from the rest of the job file."""


class SkyPilotOptions(Section):
    """Where SkyPilot is, what machines it is asked for, and how long they stay warm."""

    python: str = Field(default="", description="the Python of the environment that SkyPilot is installed in")
    api_server: str = Field(
        default="", description="address of SkyPilot's API server; by default what SkyPilot is configured for"
    )
    resources: dict[str, Any] = Field(
        default_factory=dict,
        description="in the words of a SkyPilot task; ${column} stands for a value of the configuration",
    )
    num_nodes: int | str = Field(default=1, description="nodes of a cluster; ${column} stands for a value")
    task: dict[str, Any] = Field(
        default_factory=dict, description="further fields of a SkyPilot task: config, file_mounts, volumes"
    )
    workdir: bool = Field(default=True, description="whether the job's workdir travels to the cluster")
    keep_warm: Duration = Field(
        default=0.0, description="how long an idle cluster waits for the next trial of its shape"
    )
    dead_man: Duration = Field(
        default=600.0, description="an idle cluster takes itself down after this time, whatever becomes of Lynceus"
    )
    patience: Duration = Field(
        default=900.0, description="how long no capacity, quotas and an unreachable API server are waited for"
    )

    @property
    def idle_minutes(self) -> int:
        """When a cluster takes itself down: never before we would do it."""
        return max(math.ceil(max(self.dead_man, self.keep_warm + 120.0) / 60.0), 1)


def python_of(options: SkyPilotOptions, folder: Path) -> Path:
    """The interpreter that the job file names; else `.venv-skypilot` of the folder or of where we are; else the one beside `sky`."""
    word = Path(os.path.expanduser(options.python or ".venv-skypilot/bin/python"))
    places = [base / word for base in (folder.absolute(), Path.cwd())]
    found = next((place for place in places if place.exists()), None)
    if found is not None or options.python:
        return found or places[0]
    program = shutil.which("sky")
    return Path(program).parent / "python" if program else places[-1]


def checked(options: SkyPilotOptions, space: Space) -> None:
    """Refuse placeholders that no column fills, and fields that follow from elsewhere."""
    for name in options.task:
        if name in _OWN:
            raise InputError(f"executor.task.{name}: this follows from the rest of the job file; remove it here.")
    for place in _places([options.resources, options.num_nodes, options.task]):
        if place not in space.columns:
            hint = nearest(place, space.columns) or f" Columns are {', '.join(space.columns)}."
            raise InputError(f"executor: ${{{place}}} names no column of the space.{hint}")


def machines(
    options: SkyPilotOptions, space: Space, row: int, shape: Callable[[int], Shape] | None
) -> tuple[dict[str, Any], int]:
    """Resources and number of nodes of a configuration, in SkyPilot's words.

    What the job file says under `executor.resources` comes first, then columns that a catalog of machines gave, then `resources`.
    """
    values = {name: _plain(column[row]) for name, column in space.columns.items()}
    found: dict[str, Any] = {}
    limits = Shape() if shape is None else shape(row)
    if "instance_type" in values:
        found = {name: values[name] for name in ("infra", "instance_type", "use_spot") if values.get(name) is not None}
    else:
        if limits.cpus is not None:
            found["cpus"] = limits.cpus
        if limits.memory_bytes is not None:
            found["memory"] = limits.memory_bytes / (1 << 30)
    found |= _filled(options.resources, values)
    nodes = _filled(options.num_nodes, values)
    if options.num_nodes == 1 and "num_nodes" in values:
        nodes = values["num_nodes"]
    return found, int(nodes)


def further(options: SkyPilotOptions, space: Space, row: int) -> dict[str, Any]:
    """Further fields of the task, with the values of a configuration."""
    values = {name: _plain(column[row]) for name, column in space.columns.items()}
    filled: dict[str, Any] = _filled(options.task, values)
    return filled


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    """A part of a document with values in place of `${column}`; a text that is nothing else keeps the value's type."""
    if isinstance(part, dict):
        return {key: _filled(one, values) for key, one in part.items()}
    if isinstance(part, list):
        return [_filled(one, values) for one in part]
    if not isinstance(part, str):
        return part
    whole = _PLACE.fullmatch(part)
    if whole is not None:
        return values[whole[1]]
    return _PLACE.sub(lambda match: as_text(values[match[1]]), part)


def _places(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [place for one in part.values() for place in _places(one)]
    if isinstance(part, list):
        return [place for one in part for place in _places(one)]
    return _PLACE.findall(part) if isinstance(part, str) else []


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
