"""How results are printed: tables for people, JSON for programs.

Whatever a job, a storage or another machine wrote is data: here it loses the characters that a terminal would obey, and the brackets
that Rich would read as markup. Commands print through this module only.
"""

from __future__ import annotations

import enum
import io
import json
import math
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.analysis.documents.json import to_json
from lynceus.errors import InputError
from lynceus.errors import counted as counted
from lynceus.trial.text import clean_text, escaped_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_COLUMNS = 100_000
"""Width when standard output is not a terminal: lines in files and pipes are neither broken nor cut."""
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

    from lynceus.cli.clean_render import CleanHook

    found = Console(highlight=False, stderr=stderr, quiet=quiet)
    if not found.is_terminal:
        found = Console(width=_PIPE_COLUMNS, highlight=False, stderr=stderr, quiet=quiet)
    found.push_render_hook(CleanHook())
    return found


def safe(text: str) -> str:
    r"""Text from elsewhere as a part of Rich markup: shown as it is, without obeying it.

    >>> safe("[/bold] \x1b[2J")
    '\\[/bold] �[2J'
    """
    from rich.markup import escape

    return escape(clean_text(text))


def echo(text: str, *, err: bool = False) -> None:
    """Print lines that may hold text from elsewhere."""
    typer.echo(clean_text(text), err=err)


def utc_minute(at_s: float) -> str:
    """A moment in UTC, to the minute.

    >>> utc_minute(1_795_000_000.0)
    '2026-11-18 11:06'
    """
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"


def is_piped() -> bool:
    """Whether standard output is a file or a pipe."""
    return sys.stdout is None or not sys.stdout.isatty()


def print_data(data: bytes, *, raw: bool = False) -> None:
    """Print a document: byte for byte into a file or a pipe, or if `raw`; harmless on a terminal."""
    if raw or is_piped():
        typer.echo(data, nl=False)
    else:
        lines = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        typer.echo(clean_text(lines), nl=False)


def prepare_streams() -> None:
    """Print a question mark for what a terminal that is not UTF-8 cannot show; read nothing from a closed standard input."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def fact_table() -> Table:
    """A table without lines: names on the left, facts on the right."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def print_json(value: Any) -> None:
    """Print a value as JSON; infinite and unknown numbers become null."""
    typer.echo(json_text(to_json(value)))


def json_text(value: Any) -> str:
    """JSON with the characters of all languages where the output can hold them; unsafe ones are always escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return escaped_text(json.dumps(value, indent=2, ensure_ascii=not encoding.lower().startswith("utf")))


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
    from lynceus.problem.units import format_duration, format_metric, format_money

    if value is None or objective is None or math.isnan(value):
        return "—"
    if objective == "minimize cost":
        return format_money(value)
    return format_duration(value) if objective == "minimize time" else format_metric(value)


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
