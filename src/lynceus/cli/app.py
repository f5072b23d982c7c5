"""The application: its commands, and how mistakes are reported (one line and an exit code, never a traceback)."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, cast

import typer

from lynceus.cli import exit_codes
from lynceus.cli.adopt import adopt, retire, rollback
from lynceus.cli.audit import audit
from lynceus.cli.best import best
from lynceus.cli.budget import budget
from lynceus.cli.check import check
from lynceus.cli.config import config
from lynceus.cli.dashboard import dashboard
from lynceus.cli.delete import delete
from lynceus.cli.demo import demo
from lynceus.cli.doctor import doctor
from lynceus.cli.exec_ import exec_
from lynceus.cli.explain import explain
from lynceus.cli.export import export
from lynceus.cli.fleet import fleet
from lynceus.cli.gc import gc
from lynceus.cli.import_ import import_
from lynceus.cli.init import init
from lynceus.cli.jobs import job, jobs
from lynceus.cli.logs import logs
from lynceus.cli.mode import hold, mode
from lynceus.cli.output import echo, prepare_streams
from lynceus.cli.plan import plan
from lynceus.cli.plugins import plugins
from lynceus.cli.policies import policies
from lynceus.cli.prices import prices
from lynceus.cli.record import record
from lynceus.cli.rename import rename
from lynceus.cli.replay import replay
from lynceus.cli.report import report
from lynceus.cli.resume import resume
from lynceus.cli.retune import retune
from lynceus.cli.run import run
from lynceus.cli.status import status
from lynceus.cli.stop import stop
from lynceus.cli.storage import storage
from lynceus.cli.token import token
from lynceus.cli.trials import trials
from lynceus.cli.whatif import whatif
from lynceus.errors import InfrastructureError, InputError, LynceusError, page_address
from lynceus.trial.text import clean_line, is_text
from lynceus.version import __version__

_LONGEST_MESSAGE = 2000
_NOT_A_NUMBER = re.compile(r"Input should be a valid (number|integer), unable to parse string as an? \w+")
"""Characters of a message; more would be a value that was quoted whole."""
_NEGATIVE = re.compile(r"No such option: -[$\d.].*", re.DOTALL)
"""What Click says of an amount below 0 that stands in the place of an argument."""
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The `UsageError` of the Click that Typer uses, which may be one of its own; Typer itself exports only this kind of it."""
PLUGIN_COMMANDS = "lynceus.commands"
"""Entry points of other packages that add commands, each a Typer application."""

_PANELS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Try it": {"demo": demo, "replay": replay, "policies": policies},
    "Before a search": {"init": init, "check": check, "plan": plan, "plugins": plugins, "doctor": doctor},
    "Search": {"run": run, "fleet": fleet, "stop": stop, "resume": resume, "gc": gc},
    "Monitor": {"status": status, "trials": trials, "logs": logs, "dashboard": dashboard},
    "Results": {"best": best, "explain": explain, "whatif": whatif, "report": report},
    "In production": {
        "adopt": adopt,
        "config": config,
        "exec": exec_,
        "record": record,
        "jobs": jobs,
        "job": job,
        "mode": mode,
        "hold": hold,
        "rollback": rollback,
        "retune": retune,
        "retire": retire,
    },
    "Manage studies": {"rename": rename, "delete": delete},
    "Teams": {"audit": audit},
    "Import and export": {"export": export, "import": import_},
}

app = typer.Typer(
    name="lynceus",
    help="Find the cheapest configuration of a recurring cloud job that meets its deadline.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},  # every command below inherits it
)
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(prices, name="prices", rich_help_panel="Before a search")
app.add_typer(budget, name="budget", rich_help_panel="Teams")
app.add_typer(token, name="token", rich_help_panel="Teams")
app.add_typer(storage, name="storage", rich_help_panel="Import and export")


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"lynceus {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the cheapest configuration of a recurring cloud job that meets its deadline."""


def _add_plugins() -> None:
    """Add the commands of other packages, unless a built-in command is called: finding them takes a third of its start-up time."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if words and words[0] in _command_names():
        return
    import importlib.metadata

    for point in importlib.metadata.entry_points(group=PLUGIN_COMMANDS):
        app.add_typer(point.load(), name=point.name, rich_help_panel="Of other packages")


def main() -> None:
    """Run the command line; mistakes of the user become one line on stderr."""
    prepare_streams()
    warnings.showwarning = _show_warning
    try:
        _check_arguments()
        _add_plugins()
        sys.exit(app(standalone_mode=False))  # the exit code, or None: a command that ended by itself
    except _USAGE_ERROR as error:
        sys.exit(_report_usage(cast("typer.BadParameter", error)))
    except typer.Abort:
        echo("Aborted.", err=True)
        sys.exit(1)
    except LynceusError as error:
        code = exit_codes.INFRASTRUCTURE if isinstance(error, InfrastructureError) else exit_codes.INPUT
        sys.exit(_report(str(error), code, error.see))
    except OSError as error:
        sys.exit(_report(_reason(error), exit_codes.INFRASTRUCTURE))
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)


def _command_names() -> set[str | None]:
    return {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}


def _show_warning(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
    """A warning is one line, as a mistake is, without the line of code that gave it."""
    _report(str(message), 0)


def _report_usage(error: typer.BadParameter) -> int:
    """One sentence about options or arguments that cannot be used; without any, Typer has shown the help."""
    problem = error.format_message().replace(": Value error, ", ": ").rstrip(".")
    if _NEGATIVE.fullmatch(problem):
        given = next((word for word in sys.argv[1:] if re.match(r"-\$?[\d.]", word)), "it")
        problem = f"{given} is no option, and amounts and numbers must be positive"
    problem = _NOT_A_NUMBER.sub(lambda found: f"write a{' whole' if found[1] == 'integer' else ''} number", problem)
    if not problem:
        return exit_codes.INPUT
    # Where Typer does not tell the command, as of an option without its value, the arguments do.
    named = [word for word in sys.argv[1:2] if word in _command_names()]
    command = error.ctx.command_path if error.ctx else " ".join(["lynceus", *named])
    see = " See:" if problem.endswith("?") else "; see:"
    return _report(f"{problem[:1].lower()}{problem[1:]}{see} {command} --help", exit_codes.INPUT)


def _check_arguments() -> None:
    """Refuse arguments with bytes that are no text: neither a storage nor a terminal can hold them."""
    given = {"the argument": sys.argv[1:], "LYNCEUS_STORAGE": [os.environ.get("LYNCEUS_STORAGE", "")]}
    for what, texts in given.items():
        for text in texts:
            if not is_text(text):
                raise InputError(f"{what} {text!a} is not UTF-8 text; rename the file, or correct the argument.")


def _reason(error: OSError) -> str:
    """One sentence about a failure of the machine that no command expected."""
    try:
        os.getcwd()
    except OSError:
        return "the current folder no longer exists; change to another one, then try again."
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check permissions and free space, then try again."


def _report(message: str, code: int, see: str | None = None) -> int:
    more = "" if see is None else f" See {page_address(see)}"
    echo(f"lynceus: {clean_line(message, _LONGEST_MESSAGE)}{more}", err=True)
    return code
