"""`lynceus doctor`: what is installed, what is missing, and what that means."""

from __future__ import annotations

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import Output, OutputOption, console, print_json, safe

_MARKS = {"ok": "[green]ok[/green]", "absent": "[yellow]–[/yellow]", "problem": "[red]problem[/red]"}


def doctor(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Look at Python, Lynceus, its extras, executors and the storage; say what is missing and what to do."""
    from rich.table import Table

    from lynceus.library.find import storage_url
    from lynceus.library.health import examine

    found = examine(storage_url(storage))
    if output is Output.JSON:
        print_json(found)
    else:
        table = Table("", "", "", "what to do", box=None, pad_edge=False)
        for one in found:
            table.add_row(safe(one.subject), _MARKS[one.state], safe(one.detail), safe(one.advice))
        console().print(table)
    if any(one.state == "problem" for one in found):
        raise typer.Exit(exit_codes.INFRASTRUCTURE)
