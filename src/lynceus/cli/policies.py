"""`lynceus policies`: the table of presets, and the parts of each."""

from __future__ import annotations

import enum
from typing import Annotated

import typer


class Output(enum.StrEnum):
    """How policies are printed."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def policies(
    name: Annotated[str | None, typer.Argument(help="A preset; its parts are printed.")] = None,
    lookahead: Annotated[int | None, typer.Option(help="Runs that the policy looks ahead.")] = None,
    timeout: Annotated[str | None, typer.Option(help="Another timeout: none, tg, linear, ideal, …")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
) -> None:
    """List the policies, or print the parts of one as a policy file that can be changed and replayed."""
    import json

    import yaml

    from lynceus.policy import PRESETS, preset
    from lynceus.policy.compose import describe

    if name is None and output is Output.TABLE:
        from rich.table import Table

        from lynceus.cli.result import console

        table = Table("policy", "what it is")
        for key, row in PRESETS.items():
            table.add_row(key, row.summary)
        console().print(table)
        return
    if name is None:
        parts: object = [describe(preset(key, lookahead, timeout)) for key in PRESETS]
    else:
        parts = describe(preset(name, lookahead, timeout))
    if output is Output.JSON:
        typer.echo(json.dumps(parts, indent=2))
    else:
        typer.echo(yaml.safe_dump(parts, sort_keys=False, allow_unicode=True, width=100), nl=False)
