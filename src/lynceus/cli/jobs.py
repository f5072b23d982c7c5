"""`lynceus jobs` and `lynceus job`: recurring jobs in production."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import JobArgument, named_job
from lynceus.cli.output import (
    PARAMS_COLUMNS,
    Output,
    OutputOption,
    console,
    counted,
    echo,
    fact_table,
    params_text,
    percent,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.analysis.documents.json import Document

_SHOWN_CHANGES = 8


def jobs(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """List the recurring jobs in production: version, mode, last run, what was saved."""
    from lynceus.library.find import storage_url
    from lynceus.library.recurring.job_documents import jobs_document
    from lynceus.storage.sql.jobs import JobStore
    from lynceus.storage.sql.storage import Storage

    with Storage(storage_url(storage), create=False) as opened:
        document = jobs_document(JobStore(opened))
    if output is Output.JSON:
        print_json(document["jobs"])
    elif document["jobs"]:
        _print_jobs(document["jobs"])
    else:
        echo(f"{document['storage']} has no recurring job yet; make one with: lynceus adopt NAME --from STUDY.")


def _print_jobs(lines: list[Document]) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_duration

    table = Table()
    for heading in ("job", "mode", "version", "runs", "late", "last run", "saved"):
        table.add_column(heading, no_wrap=True)
    table.add_column("configuration", min_width=PARAMS_COLUMNS)
    for one in lines:
        totals, last = one["totals"], one["last_run"]
        table.add_row(
            safe(one["name"]),
            f"{one['mode']}{', held' if one['held'] else ''}",
            str(one["version"]) + (" + canary" if one["open_canary"] else ""),
            str(totals["runs"]),
            str(totals["late"]),
            "—" if last is None else f"{last['state']} {format_duration(last['runtime_s'])}",
            _money(totals["saved_usd"]),
            safe(params_text(one["params"])),
        )
    console().print(table)


def job(
    name: JobArgument,
    audit: Annotated[bool, typer.Option("--audit", help="Show every change, with its evidence.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a recurring job: what is in production and why, what is expected of the next run, what to change, what changes brought."""
    from lynceus.library.recurring.job_documents import job_page

    document = job_page(named_job(name, storage).store, name)
    if output is Output.JSON:
        print_json(document)
        return
    out = console()
    _print_facts(out, document)
    _print_versions(out, document)
    _print_changes(out, document, audit=audit)


def _print_facts(out: Console, one: Document) -> None:
    from lynceus.cli.mode import settings_lines
    from lynceus.problem.units import format_duration, format_money
    from lynceus.storage.job_serialization import settings_of

    version, watch, totals, todo = one["version"], one["watch"], one["totals"], one["next"]
    table = fact_table()
    table.add_row("in production", safe(f"version {version['number']}: {params_text(version['params'])}"))
    table.add_row("since", safe(f"{_when(version['adopted_s'])}, by {version['by'] or '?'}: {version['reason']}"))
    given = {key: value for key, value in one["settings"].items() if value is not None}
    for label, text in settings_lines(settings_of(given)):
        table.add_row(label, safe(text))
    runs = f"{counted(totals['runs'], 'run')}, {totals['late']} late, {totals['failed']} failed, {counted(totals['canaries'], 'trial run')}"
    table.add_row("so far", f"{runs}, {format_money(totals['cost_usd'])}")
    if totals["saved_usd"] is not None:
        table.add_row(
            "saved", f"{_money(totals['saved_usd'])} against version 1, searches {format_money(totals['search_usd'])}"
        )
    if watch["expected_s"] is not None:
        late = "" if watch["late_chance"] is None else f", late with a chance of {percent(watch['late_chance'])}"
        table.add_row("next run", f"about {format_duration(watch['expected_s'])}{late}")
    for finding in watch["findings"]:
        table.add_row("found", safe(finding["text"]))
    table.add_row("next step", safe(f"{todo['kind']}: {todo['reason']}"))
    if todo["params"]:
        table.add_row("", safe(_suggestion(todo)))
    out.print(table)


def _suggestion(todo: Document) -> str:
    from lynceus.recurring.action import saving_text

    effect = todo["effect"]
    usd = effect["saving_usd"]
    saving = "" if usd is None else f", would {saving_text(usd)}"
    trial = "" if not effect["trial_usd"] else f", trying costs {_money(effect['trial_usd'])} more"
    return f"{params_text(todo['params'])}{saving}{trial}"


def _print_versions(out: Console, one: Document) -> None:
    from rich.table import Table

    table = Table()
    for heading in ("version", "from", "by", "runs", "cost of a run", "saving"):
        table.add_column(heading, no_wrap=True)
    table.add_column("configuration", min_width=PARAMS_COLUMNS)
    for version in one["versions"]:
        brought = version["brought"]
        table.add_row(
            str(version["number"]) + (" •" if version["number"] == one["version"]["number"] else ""),
            version["source"] if version["adopted_s"] is None else _when(version["adopted_s"]),
            safe(version["by"]),
            "—" if brought is None else str(brought["runs"]),
            "—" if brought is None else _money(brought["cost_usd"]),
            "—" if brought is None or brought["saving"] is None else percent(brought["saving"]),
            safe(params_text(version["params"])),
        )
    out.print(table)


def _print_changes(out: Console, one: Document, *, audit: bool) -> None:
    changes = one["changes"] if audit else one["changes"][-_SHOWN_CHANGES:]
    for change in changes:
        about = "" if change["version"] is None else f" version {change['version']}"
        out.print(
            f"{_when(change['at_s'])}  {change['kind']}{about}, by {change['by'] or '?'}: {change['reason']}",
            markup=False,
        )
        if audit:
            for label in ("evidence", "expected", "brought"):
                if facts := {key: value for key, value in (change[label] or {}).items() if value is not None}:
                    out.print(f"    {label}: {_facts(facts)}", markup=False, style="dim")


def _facts(facts: dict[str, Any]) -> str:
    return ", ".join(f"{_label(key)} {_fact(key, value)}" for key, value in facts.items())


def _label(key: str) -> str:
    """A field without its unit, which its value has."""
    return key.removesuffix("_usd").removesuffix("_s").replace("_", " ")


def _fact(key: str, value: Any) -> str:
    """One fact of an audit; changes of settings as `mode: observe → apply`."""
    from lynceus.problem.units import format_duration

    if isinstance(value, dict) and all(isinstance(each, list | tuple) and len(each) == 2 for each in value.values()):
        changes = ((name, _fact(name, old), _fact(name, new)) for name, (old, new) in value.items())
        return ", ".join(f"{_label(name)}: {old} → {new}" for name, old, new in changes)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
    if key.endswith("_usd"):
        return _money(value)
    if key.endswith("_s"):
        return format_duration(value)
    return percent(value) if key in ("saving", "late_chance") else f"{value:.6g}"


def _money(usd: float | None) -> str:
    from lynceus.problem.units import format_money

    return "—" if usd is None or math.isnan(usd) else format_money(usd)


def _when(at_s: float | None) -> str:
    return "—" if at_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))
