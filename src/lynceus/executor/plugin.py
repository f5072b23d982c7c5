"""How an executor is made from the section `executor` of a job file; third parties offer such a plugin by an entry point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from lynceus.document import Section
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Executor
from lynceus.executor.shape import Shape
from lynceus.problem import Problem
from lynceus.space import Space


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything that is the same for all runs of a study."""

    problem: Problem
    job: LocalJob
    """The command, with environment and secrets."""
    root: Path
    """Where run directories are kept on the side of Lynceus."""
    shape: Callable[[int], Shape] | None = None
    """Processors and memory of a row, from `resources`; nothing: not said."""
    setup: str | tuple[str, ...] | None = None
    """The job's `setup`, for plugins that run it themselves."""


class Options(Protocol):
    """Options as the plugin's own model has checked them."""


class NoOptions(Section):
    """An executor without options."""


@dataclass(frozen=True)
class Plugin:
    """An executor that job files can name."""

    make: Callable[[Setting, Any], Executor]
    """From the setting and the checked options to an executor; it may have a method `close`."""
    options: type[BaseModel] = NoOptions
    """The fields of `executor:` besides `kind` and `run_directory`. Subclasses of `lynceus.document.Section` give good messages."""
    check: Callable[[Any, Space], None] | None = None
    """Refuses options that do not fit a space (`InputError`), before anything runs."""
    setup: Literal["here", "own"] = "here"
    """Who runs `setup`: Lynceus once on its own machine, or the executor where the jobs run."""
    about: str = ""
    """One line for `lynceus plugins`."""
