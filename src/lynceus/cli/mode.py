"""`lynceus mode` and `lynceus hold`: what Lynceus may do with a recurring job by itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import ByOption, JobArgument, ReasonOption, author, named_job
from lynceus.cli.output import Output, OutputOption, console, echo, fact_table, print_json, safe
from lynceus.errors import InputError


def mode(
    name: JobArgument,
    mode: Annotated[
        str | None,
        typer.Argument(metavar="[observe|suggest|apply]", help="Record only; say what to change; change it."),
    ] = None,
    allowance: Annotated[
        str | None,
        typer.Option("--allowance", help="Dollars that trying may cost more in a calendar month, such as $20."),
    ] = None,
    late_chance: Annotated[
        float | None, typer.Option("--late-chance", help="The largest chance to be late with which something is tried.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help="A run that takes longer is late, such as 45m.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", help="When nothing is tried: sat, 2026-12-24, 'mon-fri 08:00-18:00'; none: at no time."
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", help="Of these times and months, such as Europe/Lisbon.")
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say how far changes of a recurring job may go, when, and for how much money; without options, show it."""
    changes = _changes(mode, allowance, late_chance, deadline, exclude, timezone)
    job = named_job(name, storage)
    settings = job.set(by=author(by), reason=reason, **changes) if changes else job.history.settings
    if output is Output.JSON:
        print_json(settings)
        return
    table = fact_table()
    for label, text in settings_lines(settings):
        table.add_row(label, safe(text))
    console().print(table)


def _changes(
    mode: str | None,
    allowance: str | None,
    late_chance: float | None,
    deadline: str | None,
    exclude: list[str] | None,
    timezone: str | None,
) -> dict[str, Any]:
    """The settings that the options name."""
    from lynceus.problem.units import parse_duration, parse_money

    found = {
        "mode": mode,
        "allowance_usd": None if allowance is None else parse_money(allowance, "--allowance"),
        "late_chance": late_chance,
        "deadline_s": None if deadline is None else parse_duration(deadline, "--deadline"),
        "exclude": None if not exclude else () if exclude == ["none"] else tuple(exclude),
        "timezone": timezone,
    }
    return {name: value for name, value in found.items() if value is not None}


def settings_lines(settings: Any) -> list[tuple[str, str]]:
    """The settings of a job for people."""
    import math

    from lynceus.cli.output import percent
    from lynceus.problem.units import format_duration, format_money

    unpaid = settings.mode == "apply" and not settings.allowance_usd
    none = ": nothing is tried that may cost more; allow some with --allowance '$20'" if unpaid else ""
    held = " (held: nothing is tried or changed)" if settings.held else ""
    lines = [("mode", f"{settings.mode}{held}")]
    if math.isfinite(settings.deadline_s):
        lines.append(("deadline", format_duration(settings.deadline_s)))
    lines += [
        ("allowance", f"{format_money(settings.allowance_usd)} a month{none}"),
        ("may be late", f"with a chance of {percent(settings.late_chance)} at most"),
        (
            "excluded times",
            f"{', '.join(settings.exclude)} ({settings.timezone})" if settings.exclude else "none",
        ),
    ]
    return lines


def hold(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The name of a recurring job.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All jobs of the storage.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Allow changes again.")] = False,
    by: ByOption = None,
    reason: ReasonOption = "",
    storage: StorageOption = None,
) -> None:
    """The kill switch: no canary starts and Lynceus changes nothing until 'hold --release'. Runs are recorded on."""
    if (name is None) is not everything:
        raise InputError("hold: name one job, or all of them with --all.")
    from lynceus.library.find import storage_url
    from lynceus.storage.serialization import DamagedRecordError
    from lynceus.storage.sql.jobs import JobStore
    from lynceus.storage.sql.storage import Storage

    with Storage(storage_url(storage), create=False) as opened:
        names = JobStore(opened).names() if name is None else [name]
    refused: list[DamagedRecordError] = []
    for one in names:
        try:
            named_job(one, storage).hold(not release, by=author(by), reason=reason)
        except DamagedRecordError as error:  # the others are held all the same
            refused.append(error)
            continue
        echo(f"{one}: {'changes are allowed again' if release else 'held: nothing is tried or changed'}.")
    if refused:
        raise refused[0]
