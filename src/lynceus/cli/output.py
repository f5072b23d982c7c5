"""How results are printed: tables for people, JSON for programs."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.analysis.documents.json import to_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_COLUMNS = 160
"""Width when standard output is not a terminal: lines in files and pipes should not be broken."""
NARROW_COLUMNS = 100
"""Below this width, tables leave out their least important columns instead of cutting every cell."""
PARAMS_COLUMNS = 12
"""The least width of a column with configurations, whose cells are broken into lines."""


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output (or standard error); wide when it is not a terminal."""
    from rich.console import Console

    found = Console(highlight=False, stderr=stderr, quiet=quiet)
    return found if found.is_terminal else Console(width=_PIPE_COLUMNS, highlight=False, stderr=stderr, quiet=quiet)


def fact_table() -> Table:
    """A table without lines: names on the left, facts on the right."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def print_json(value: Any) -> None:
    """Print a value as JSON; infinite and unknown numbers become null."""
    typer.echo(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def write_file(path: Path, data: bytes) -> None:
    """Write a file that the user named."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: the file cannot be written: {error.strerror}; choose another path.") from None


def params_text(params: Mapping[str, object]) -> str:
    """A configuration in one line.

    >>> params_text({"vm": "large", "nodes": 4})
    'vm=large nodes=4'
    """
    return " ".join(f"{name}={value}" for name, value in params.items())


def objective_text(objective: str | None, value: float | None) -> str:
    """A value of an objective such as `minimize cost`, with its unit."""
    from lynceus.problem.units import format_duration, format_money

    if value is None or objective is None or math.isnan(value):
        return "—"
    if objective.endswith(" cost"):
        return format_money(value)
    return format_duration(value) if objective.endswith(" time") else f"{value:.5g}"


def percent(share: float) -> str:
    """A probability or a share; 0 % and 100 % only when it is exactly that.

    >>> percent(0.997), percent(0.42), percent(float("nan"))
    ('> 99 %', '42 %', 'unknown')
    """
    if math.isnan(share):
        return "unknown"
    if 0.99 < share < 1:
        return "> 99 %"
    if 0 < share < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
