"""`lynceus plugins`: the executors that job files can name."""

from __future__ import annotations

from lynceus.cli.output import Output, OutputOption, console, print_json, safe


def plugins(output: OutputOption = Output.TABLE) -> None:
    """List executors: those of Lynceus and those of other packages; for one that cannot be used, the reason."""
    from rich.table import Table

    from lynceus.executors.registry import executor_plugins

    found = executor_plugins()
    if output is Output.JSON:
        print_json(found)
        return
    table = Table("executor", "package", "version", "", box=None, pad_edge=False)
    for one in found:
        about = f"[red]{safe(one.problem)}[/red]" if one.problem else safe(one.about)
        table.add_row(safe(one.name), safe(one.package), safe(one.version), about)
    console().print(table)
