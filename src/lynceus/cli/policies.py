"""`lynceus policies`: the presets, and the parts of each."""

from __future__ import annotations

import enum
import json
from typing import Annotated

import typer

from lynceus.cli.output import console, echo, print_data, safe


class PolicyFormat(enum.StrEnum):
    """How policies are printed."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def policies(
    name: Annotated[str | None, typer.Argument(help="A preset; prints its parts.")] = None,
    lookahead: Annotated[int | None, typer.Option(help="How many runs the policy looks ahead.")] = None,
    timeout: Annotated[str | None, typer.Option(help="Another timeout: none, tg, linear, ideal, …")] = None,
    output: Annotated[PolicyFormat, typer.Option("--output", "-o", help="How to print.")] = PolicyFormat.TABLE,
) -> None:
    """List the policies, or print the parts of one as a policy file to edit and replay."""
    from lynceus.policy.policy_file import describe
    from lynceus.policy.presets import all_presets, preset

    if name is None and output is PolicyFormat.TABLE:
        from rich.table import Table

        table = Table("policy", "description")
        for key, row in all_presets().items():
            table.add_row(safe(key), safe(row.summary))
        console().print(table)
        return
    if name is None:
        parts: object = [describe(preset(key, lookahead, timeout)) for key in all_presets()]
    else:
        parts = describe(preset(name, lookahead, timeout))
    if output is PolicyFormat.JSON:
        echo(json.dumps(parts, indent=2))
    else:
        import yaml

        print_data(yaml.safe_dump(parts, sort_keys=False, allow_unicode=True, width=100).encode())
