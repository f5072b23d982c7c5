"""`lynceus fleet`: search for the best configurations of many jobs under one budget."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption, print_note
from lynceus.cli.output import Output, OutputOption, console, counted, params_text, print_json, safe
from lynceus.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.library.fleet import FleetReport
    from lynceus.study.fleet import FleetJob
    from lynceus.trial.outcome import Observation


def fleet(
    files: Annotated[list[Path], typer.Argument(help="Job files, such as jobs/*.yaml.")],
    budget: Annotated[str, typer.Option(help="What all searches together may cost, such as '50 USD'.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Search for the best configurations of many jobs under one budget: each trial goes to the job that is expected to save most.

    The same command continues a fleet that was stopped or killed, or goes on with a larger budget. The jobs learn from each other.
    """
    from lynceus.cli.interrupts import interrupts
    from lynceus.library.fleet import fleet_report, open_fleet, prepare_fleet
    from lynceus.problem.units import format_money, parse_money
    from lynceus.trial.record import RequestedState

    usd = parse_money(budget, "--budget")
    if usd <= 0:
        raise InputError("--budget: got 0 dollars; give what all searches together may cost, such as '50 USD'.")
    prepared = prepare_fleet(files)
    out = console(stderr=output is Output.JSON)
    out.print(f"{counted(len(prepared), 'job')} for at most {format_money(usd)} together.")
    if not yes:
        _confirm(output)
    notes: list[str] = []
    with open_fleet(prepared, storage, usd, notes) as (found, members), interrupts("fleet", lambda said: None) as asked:
        for note in notes:
            print_note(note)
        before = sum(job.study.record.started for job in found.jobs)
        found.run(settled=lambda job, seen: _settled(out, job, seen), requested_state=asked)
        interrupted = asked() is not RequestedState.RUN
        report = fleet_report(found, members, usd)
        idle = not interrupted and sum(job.study.record.started for job in found.jobs) == before
    if idle:
        whys = "; ".join(f"{one.study}: {one.why_over}" for one in report.jobs)
        out.print(f"No trial was started. {safe(whys)}.", soft_wrap=True)
    if output is Output.JSON:
        print_json(report)
    else:
        _print_report(out, report)
    if interrupted:
        raise typer.Exit(exit_codes.INTERRUPTED)
    if any(one.best is None for one in report.jobs):
        raise typer.Exit(exit_codes.INFEASIBLE)


def _confirm(output: Output) -> None:
    if not sys.stdin.isatty() or output is Output.JSON:
        raise InputError(
            "fleet: this would spend money, and there is no terminal to ask for confirmation; add -y to go ahead."
        )
    if not typer.confirm("Go ahead?", default=False):
        raise typer.Exit(0)


def _settled(out: Console, job: FleetJob, seen: Observation) -> None:
    """One line per trial."""
    from lynceus.problem.units import format_duration, format_money
    from lynceus.trial.trial import STATES

    params = params_text(job.study.problem.space.point(seen.row))
    ended = f"{STATES[seen.outcome.end]} after {format_duration(seen.outcome.seconds)}, {format_money(seen.outcome.charged_usd)}"
    out.print(f"{safe(job.study.name)} #{seen.order.number}: {safe(params)} {ended}", soft_wrap=True)


def _print_report(out: Console, report: FleetReport) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_money

    table = Table("job", "trials", "spent", "best", "cost of a run", "future runs", "they save")
    for one in report.jobs:
        best = "none yet" if one.best is None else params_text(one.best.params)
        cost = "—" if one.best is None else format_money(one.best.cost_usd)
        saved = "—" if one.future_saving_usd is None else format_money(one.future_saving_usd)
        numbers = cost, f"{one.future_uses:,.0f}", saved
        table.add_row(safe(one.study), str(one.trials), format_money(one.spent_usd), safe(best), *numbers)
    out.print(table)
    out.print(f"{format_money(report.spent_usd)} of {format_money(report.budget_usd)} spent.")
