"""`lynceus status`, `trials` and `logs`: looking at studies."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, console, print_json, words
from lynceus.errors import InputError

_QUIET_S = 30.0
"""Workers give a sign of life every few seconds; after so many without one, nobody is there."""
_WIDE_ENOUGH = 100
"""Columns of a terminal under which the least important ones of a table are left out, rather than cutting every cell."""
_LEAST = 12
"""Columns that a configuration keeps, however narrow the terminal is; it is broken into lines."""


def status(study: StudyArgument = None, storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """How studies stand: money, trials, incumbent. Without a name, all of them."""
    from lynceus.cli.glance import glance
    from lynceus.cli.named import named_study, storage_of

    with storage_of(study, storage) as kept:
        records = kept.studies() if study is None else [named_study(kept, study)]
        facts = [glance(kept, record) for record in records]
    if output is Output.JSON:
        print_json(facts[0] if study is not None else facts)
    else:
        _print_status(facts)


def goal_text(objective: str, value: float | None) -> str:
    """A value of the goal with its unit."""
    from lynceus.units import format_duration, format_money

    if value is None or value != value:
        return "—"
    if objective.endswith(" cost"):
        return format_money(value)
    return format_duration(value) if objective.endswith(" time") else f"{value:.5g}"


def _unattended(facts: dict[str, Any]) -> str:
    """A study that should run, or has trials that do, but nobody has worked on for a while."""
    from lynceus.units import format_duration

    ago = time.time() - facts["worker_seen_s"]
    return (
        f"[yellow]nobody works on it since {format_duration(ago)}[/]"
        if (facts["state"] == "RUNNING" or facts["running"]) and ago > _QUIET_S
        else ""
    )


def _print_status(facts: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from lynceus.units import format_money

    out = console()
    wide = out.width >= _WIDE_ENOUGH
    table = Table()
    for heading in ("study", "state", "spent", *(["reserved"] if wide else []), "budget", "trials", "best"):
        table.add_column(heading, no_wrap=True)
    table.add_column("configuration", min_width=_LEAST)
    colours = {"RUNNING": "green", "PAUSED": "yellow", "INTERRUPTED": "yellow", "STOPPED": "yellow", "FINISHED": "bold"}
    for one in facts:
        counts = f"{one['trials']}" + (f" + {one['running']} open" if one["running"] else "")
        table.add_row(
            escape(one["name"]),
            f"[{colours[one['state']]}]{one['state']}[/]",
            format_money(one["spent_usd"]),
            *([format_money(one["reserved_usd"])] if wide else []),
            format_money(one["budget_usd"]),
            counts,
            goal_text(one["objective"], one["best"]),
            escape(words(one["best_params"] or {})) or "—",
        )
    out.print(table)
    for one in facts:
        said = [text for text in (escape(one["reason"] or ""), _unattended(one)) if text]
        if said:
            out.print(f"{escape(one['name'])}: {'; '.join(said)}")


def trials(
    study: StudyArgument = None,
    state: Annotated[str | None, typer.Option(help="Only these: RUNNING, COMPLETE, TIMEOUT or FAIL.")] = None,
    where: Annotated[str | None, typer.Option(help="Only where this holds: an expression over parameters.")] = None,
    feasible: Annotated[bool, typer.Option("--feasible", help="Only runs that kept every limit.")] = False,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last so many.")] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the trials of a study."""
    from lynceus.cli.opened import open_study
    from lynceus.insight.records import trial_records

    one = open_study(study, storage)
    problem = one.study.problem
    rows = trial_records(problem, one.study.history, one.study.pending)
    if state is not None:
        known = ("RUNNING", "COMPLETE", "TIMEOUT", "FAIL")
        if state.upper() not in known:
            raise InputError(f"--state {state!r} is unknown; use one of {', '.join(known)}.")
        rows = [row for row in rows if row["state"] == state.upper()]
    if where is not None:
        mask = problem.space.mask(where)
        rows = [row for row in rows if mask[problem.space.row(row["params"])]]
    if feasible:
        rows = [row for row in rows if row["keeps_limits"]]
    rows = rows[-last:] if last is not None else rows
    if output is Output.JSON:
        print_json(rows)
    else:
        _print_trials(rows)


def _print_trials(rows: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from lynceus.units import format_duration, format_money

    metrics = sorted({name for row in rows for name in row["metrics"]})
    out = console()
    wide = out.width >= _WIDE_ENOUGH
    table = Table()
    table.add_column("#", no_wrap=True)
    table.add_column("configuration", min_width=_LEAST)
    for heading in ("state", "time", "charged", "cost of a run" if wide else "cost", "limits"):
        table.add_column(heading, no_wrap=True)
    for heading in (*metrics, *(["why"] if wide else [])):
        table.add_column(heading)
    styles = {"COMPLETE": "green", "TIMEOUT": "yellow", "FAIL": "red", "RUNNING": "cyan"}
    for row in rows:
        kept = {None: "", True: "kept", False: "broken"}[row["keeps_limits"]]
        state = row["state"] + (f" ({row['reason']})" if row["reason"] else "")
        table.add_row(
            str(row["number"]),
            escape(words(row["params"])),
            f"[{styles[row['state']]}]{state}[/]",
            "" if row["runtime_s"] is None else format_duration(row["runtime_s"]),
            "" if row["charged_usd"] is None else format_money(row["charged_usd"]),
            "" if row["cost_usd"] is None else format_money(row["cost_usd"]),
            kept,
            *(f"{row['metrics'][name]:.5g}" if name in row["metrics"] else "" for name in metrics),
            *([escape(row["detail"] or row["why"])] if wide else []),
        )
    out.print(table)


def logs(
    study: Annotated[str, typer.Argument(help="The name of a study, or its job file.")],
    number: Annotated[int, typer.Argument(help="The trial's number.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on while the trial runs.")] = False,
    stream: Annotated[str, typer.Option(help="stdout, stderr or both.")] = "both",
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what a trial wrote."""
    from lynceus.cli.opened import open_study
    from lynceus.cli.outputs import Tail
    from lynceus.job.execution import study_folder
    from lynceus.job.secrets import hidden, known_secrets

    if stream not in ("stdout", "stderr", "both"):
        raise InputError(f"--stream {stream!r} is unknown; use stdout, stderr or both.")
    one = open_study(study, storage)
    numbers = {seen.order.number for seen in one.study.history} | {order.number for order in one.study.pending}
    if number not in numbers:
        raise InputError(f"study {one.name!r} has no trial {number}; 'lynceus trials {one.name}' lists them.")
    secrets = known_secrets(one.prepared.job)
    folder = study_folder(one.prepared.job, one.study) / str(number)
    tails = [Tail(folder / name) for name in (("stdout", "stderr") if stream == "both" else (stream,))]
    if output is Output.JSON:
        print_json({"number": number} | {tail.path.name: hidden(tail.read(), secrets) for tail in tails})
        return
    while True:
        for tail in tails:
            typer.echo(hidden(tail.read(), secrets), nl=False)
        one.study.refresh()
        if not follow or number not in {order.number for order in one.study.pending}:
            break
        time.sleep(0.3)
    for tail in tails:
        typer.echo(hidden(tail.read(), secrets), nl=False)
