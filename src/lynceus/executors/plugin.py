"""How an executor is made from the section `executor` of a job file. Other packages offer plugins through entry points, see `registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Executor
from lynceus.executors.resources import Resources
from lynceus.problem.fields import Section
from lynceus.problem.problem import Problem
from lynceus.space.table import Space


@dataclass(frozen=True, eq=False)
class ExecutorContext:
    """What an executor needs to know about a study: the same for all its runs."""

    problem: Problem
    job: JobCommand
    """The command, with its environment and secrets."""
    root: Path
    """Where Lynceus keeps run directories on its own machine."""
    resources: Callable[[int], Resources] | None = None
    """CPUs and memory of a row, from `resources` in the job file; None if the job file does not say."""
    setup: str | tuple[str, ...] | None = None
    """The job's `setup`, for plugins that run it themselves."""


class NoOptions(Section):
    """The options of an executor that has none."""


@dataclass(frozen=True)
class Plugin:
    """An executor that job files can name."""

    make: Callable[[ExecutorContext, Any], Executor]
    """Makes the executor from the context and the validated options. If it has a method `close`, Lynceus calls it at the end."""
    options: type[BaseModel] = NoOptions
    """The fields of `executor:` besides `kind` and `run_directory`. Subclasses of `lynceus.problem.fields.Section` give good messages."""
    check: Callable[[Any, Space], None] | None = None
    """Raises `InputError` for options that do not fit a space, before any trial runs."""
    setup: Literal["here", "own"] = "here"
    """Who runs `setup`: Lynceus once on its own machine, or the executor where the jobs run."""
    about: str = ""
    """One line for `lynceus plugins`."""
    require: Callable[[], None] | None = None
    """Raises `MissingExtraError` if an optional package is missing; `lynceus plugins` shows that sentence."""
    look_for: Callable[[], str] | None = None
    """Says what it needs on this machine, unless the job file names another, and does not find; empty if all is there."""
