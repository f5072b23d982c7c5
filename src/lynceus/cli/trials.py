"""`lynceus trials`: the trials of a study as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study, print_note
from lynceus.cli.output import (
    NARROW_COLUMNS,
    PARAMS_COLUMNS,
    Output,
    OutputOption,
    console,
    counted,
    echo,
    params_text,
    print_json,
    safe,
)
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.analysis.trial_rows import TrialRow

_COLOURS = {"COMPLETE": "green", "TIMEOUT": "yellow", "FAIL": "red", "RUNNING": "cyan"}


def trials(
    study: StudyArgument = None,
    state: Annotated[str | None, typer.Option(help="Only RUNNING, COMPLETE, TIMEOUT or FAIL.")] = None,
    where: Annotated[
        str | None,
        typer.Option(
            help="Only where an expression over parameters, state, reason, runtime (seconds), cost, charged (dollars), feasible and "
            "metrics holds: \"nodes > 2 and state == 'FAIL'\"."
        ),
    ] = None,
    feasible: Annotated[bool, typer.Option("--feasible", help="Only runs that met every constraint.")] = False,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last so many.")] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the trials of a study."""
    from lynceus.analysis.trial_filter import select_trials
    from lynceus.analysis.trial_rows import trial_rows

    one = named_study(study, storage)
    if state is not None and state.upper() not in _COLOURS:
        raise InputError(f"--state is {state!r}, which is unknown; use one of {', '.join(_COLOURS)}.")
    wanted = None if state is None else state.upper()
    found = select_trials(one.study, state=wanted, where=where, feasible=feasible)
    rows = trial_rows(one.study.problem, found if last is None else found[-last:])
    if output is Output.JSON:
        print_json(rows)
    else:
        if rows:
            _print_rows(rows)
        else:
            of = f"none of {counted(total, 'trial')} matches" if (total := one.study.record.started) else "no trial yet"
            echo(f"{one.name}: {of}.")
        for change in one.study.record.limit_changes:
            print_note(f"constraints changed: {change}")


def _print_rows(rows: Sequence[TrialRow]) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_metric

    metrics = sorted({name for row in rows for name in row.metrics})
    measured = any(row.peak_memory_bytes is not None for row in rows)
    out = console()
    wide = out.width >= NARROW_COLUMNS
    table = Table()
    table.add_column("#", no_wrap=True)
    table.add_column("configuration", min_width=PARAMS_COLUMNS)
    for heading in ("state", "time", "charged", "cost of a run" if wide else "cost", "feasible" if wide else "ok"):
        table.add_column(heading, no_wrap=True)
    for heading in (*(["memory"] if measured and wide else []), *metrics, *(["why"] if wide else [])):
        table.add_column(safe(heading))
    for row in rows:
        table.add_row(
            str(row.number),
            safe(params_text(row.params)),
            f"[{_COLOURS[row.state]}]{row.state + (f' ({row.reason})' if row.reason else '')}[/]",
            *_numbers(row),
            {None: "", True: "yes", False: "no"}[row.keeps_constraints],
            *([_memory(row)] if measured and wide else []),
            *(format_metric(row.metrics[name]) if name in row.metrics else "" for name in metrics),
            *([safe(row.detail or row.why)] if wide else []),
        )
    out.print(table)


def _numbers(row: TrialRow) -> tuple[str, str, str]:
    """Time, charge and cost of a run; empty where they are not known."""
    from lynceus.problem.units import format_duration, format_money

    return (
        "" if row.runtime_s is None else format_duration(row.runtime_s),
        "" if row.charged_usd is None else format_money(row.charged_usd),
        "" if row.cost_usd is None else format_money(row.cost_usd),
    )


def _memory(row: TrialRow) -> str:
    """The most memory that the trial held; empty where it is not known."""
    from lynceus.problem.units import format_bytes

    return "" if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes)
