"""Progress of a campaign: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from lynceus_lab.cell import Done
    from lynceus_lab.engines import Crashed

_EVERY_S = 30.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def progress(total: int) -> Iterator[Callable[[Done | Crashed], None]]:
    """A progress bar on a terminal, occasional lines elsewhere; both on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(total)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(
            task, advance=1, description=f"{result.cell.setting.job}, seed {result.cell.seed}"
        )


def _lines(total: int) -> Callable[[Done | Crashed], None]:
    from lynceus.problem.units import format_duration

    began = last = time.monotonic()
    count = 0

    def report(result: Done | Crashed) -> None:
        nonlocal last, count
        count += 1
        now = time.monotonic()
        if now - last >= _EVERY_S or count == total:
            last = now
            left = format_duration(round((now - began) / count * (total - count)))
            typer.echo(f"{count:,} of {total:,} cells, about {left} left", err=True)

    return report
