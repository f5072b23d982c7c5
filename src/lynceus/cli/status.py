"""`lynceus status`: state, money, trials and the best configuration of studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lynceus.cli.arguments import StorageOption, StudyArgument, print_note
from lynceus.cli.output import (
    NARROW_COLUMNS,
    PARAMS_COLUMNS,
    Output,
    OutputOption,
    console,
    echo,
    objective_text,
    params_text,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from lynceus.analysis.overview import StudyOverview
    from lynceus.analysis.shared_budgets import SharedBudgetUse

_SILENT_S = 30.0
"""Workers send a heartbeat every few seconds; after so many without one, none is there."""
_COLOURS = {
    "RUNNING": "green",
    "PAUSED": "yellow",
    "INTERRUPTED": "yellow",
    "STOPPED": "yellow",
    "FINISHED": "bold",
    "DAMAGED": "red",
}


def status(study: StudyArgument = None, storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show state, money, trials and the best configuration of a study; without a name, of all studies."""
    from lynceus.library.find import find_records
    from lynceus.library.overview import overview_or_note, stored_overview
    from lynceus.storage.sql.budgets import BudgetStore

    opened, records, note = find_records(study, storage)
    with opened:
        print_note(note)
        overview = overview_or_note if study is None else stored_overview
        budgets = BudgetStore(opened).all()
        overviews = [overview(opened, record, budgets) for record in records]
        now_s = opened.clock.now()
    if output is Output.JSON:
        print_json(overviews if study is None else overviews[0])
    elif overviews:
        _print_overviews(overviews, now_s)
    else:
        echo(f"{opened.shown_url} has no study yet; start one with: lynceus run job.yaml.")


def _print_overviews(overviews: Sequence[StudyOverview], now_s: float) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_money

    out = console()
    wide = out.width >= NARROW_COLUMNS
    table = Table()
    for heading in ("study", "state", "spent", *(["reserved"] if wide else []), "budget", "trials", "best"):
        table.add_column(heading, no_wrap=True)
    table.add_column("configuration", min_width=PARAMS_COLUMNS)
    for one in overviews:
        table.add_row(
            safe(one.name),
            f"[{_COLOURS[one.state]}]{one.state}[/]",
            format_money(one.spent_usd),
            *([format_money(one.reserved_usd)] if wide else []),
            "—" if one.objective is None else format_money(one.budget_usd),
            f"{one.trials}" + (f" + {one.running} open" if one.running else ""),
            objective_text(one.objective, one.best_value),
            ("nearest: " if one.shortfall else "") + safe(params_text(one.best_params or {})) or "—",
        )
    out.print(table)
    for budget in dict.fromkeys(budget for one in overviews for budget in one.shared_budgets):
        out.print(_budget_text(budget), markup=False)
    for one in overviews:
        changed = f"constraints changed: {one.limit_changes[-1]}" if one.limit_changes else None
        reason = f"the search is over: {one.reason}" if one.state == "FINISHED" and one.reason else one.reason
        if remarks := [text for text in (reason, one.shortfall, changed, one.note) if text]:
            out.print(f"{one.name}: {'; '.join(remarks)}", markup=False)
        if silence := _silence(one, now_s):
            out.print(f"{one.name}: {silence}", markup=False, style="yellow")


def _budget_text(budget: SharedBudgetUse) -> str:
    from lynceus.problem.units import format_money

    used = f"{format_money(budget.charged_usd)} charged and {format_money(budget.reserved_usd)} reserved"
    return f"{budget.account}: {used} of {format_money(budget.usd)} for {budget.month}"


def _silence(one: StudyOverview, now_s: float) -> str:
    """A sentence about a study that should run, or has open trials, but has no worker."""
    from lynceus.problem.units import format_duration

    silent_s = 0.0 if one.worker_seen_s is None else now_s - one.worker_seen_s
    expected = one.state == "RUNNING" or one.running
    return f"no worker has been running it for {format_duration(silent_s)}" if expected and silent_s > _SILENT_S else ""
