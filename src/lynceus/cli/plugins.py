"""`lynceus plugins`: the executors that job files can name."""

from __future__ import annotations

from lynceus.cli.output import Output, OutputOption, console, print_json


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
        table.add_row(one.name, one.package, one.version, (one.problem and f"[red]{one.problem}[/red]") or one.about)
    console().print(table)
