"""Registers the commands that live with studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from lynceus.cli.answers import best, explain, whatif
from lynceus.cli.control import resume, stop, storage_upgrade
from lynceus.cli.dashboard import dashboard
from lynceus.cli.exports import export, import_
from lynceus.cli.gc import gc
from lynceus.cli.jobs import check, init, plan
from lynceus.cli.look import logs, status, trials
from lynceus.cli.plugins import plugins
from lynceus.cli.report import report
from lynceus.cli.run import run

_GROUPS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Before a search": {"init": init, "check": check, "plan": plan, "plugins": plugins},
    "The search": {"run": run, "stop": stop, "resume": resume, "gc": gc},
    "Looking": {"status": status, "trials": trials, "logs": logs, "dashboard": dashboard},
    "Conclusions": {"best": best, "explain": explain, "whatif": whatif, "report": report},
    "Exchange": {"export": export, "import": import_},
}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for panel, commands in _GROUPS.items():
        for name, command in commands.items():
            app.command(name, rich_help_panel=panel)(command)
    storage = typer.Typer(help="The database that keeps studies.", no_args_is_help=True)
    storage.command("upgrade")(storage_upgrade)
    app.add_typer(storage, name="storage", rich_help_panel="Exchange")
