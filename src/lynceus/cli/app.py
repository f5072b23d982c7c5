"""The application: its commands, and what a mistake looks like (one line, an exit code, never a traceback)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lynceus.cli.demo import demo
from lynceus.cli.lab import lab
from lynceus.cli.policies import policies
from lynceus.cli.prices import prices
from lynceus.cli.replay import replay
from lynceus.cli.studies import register
from lynceus.errors import InfrastructureError, LynceusError

app = typer.Typer(
    name="lynceus",
    help="Find the cheapest configuration of a recurring cloud job that is still on time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("demo")(demo)
app.command("replay")(replay)
app.command("policies")(policies)
app.add_typer(lab)
app.add_typer(prices)
register(app)

EXIT_INPUT, EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED = 2, 4, 130


def _version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata  # half of the start-up time of every other command

        typer.echo(f"lynceus {importlib.metadata.version('lynceus')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Find the cheapest configuration of a recurring cloud job that is still on time."""


def main() -> None:
    """Run the command line; users' mistakes become one line on stderr."""
    try:
        app()
    except InfrastructureError as error:
        sys.exit(_complain(error, EXIT_INFRASTRUCTURE))
    except LynceusError as error:
        sys.exit(_complain(error, EXIT_INPUT))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _complain(error: LynceusError, code: int) -> int:
    typer.echo(f"lynceus: {' '.join(str(error).split())}", err=True)
    return code
