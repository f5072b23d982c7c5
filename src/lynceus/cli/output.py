"""How results are printed: for people (tables, lines) or for programs (JSON)."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.plain import finite

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 160
"""Columns when nobody looks: a file or a pipe should not get broken lines."""


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]
StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="LYNCEUS_STORAGE",
        help="Where studies are kept: sqlite:///lynceus.db or postgresql+psycopg://…",
    ),
]
StudyArgument = Annotated[
    str | None, typer.Argument(help="The name of a study, or its job file; may be left out when there is only one.")
]


def console() -> Console:
    """Standard output; wide when it is not a terminal."""
    from rich.console import Console

    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(width=_WIDE, highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON; what is infinite or not known becomes null."""
    typer.echo(json.dumps(finite(value), indent=2, ensure_ascii=False))


def words(params: Mapping[str, object]) -> str:
    """A configuration in one line.

    >>> words({"vm": "large", "nodes": 4})
    'vm=large nodes=4'
    """
    return " ".join(f"{name}={value}" for name, value in params.items())


def percent(share: float) -> str:
    """A probability for people: never 0 % or 100 % when it is not exactly that.

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
