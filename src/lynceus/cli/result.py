"""Results of replays for people (tables) and for programs (JSON)."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lynceus.replay import Campaign, Level, Quantiles, Summary, load_job, shipped_jobs, table_present
from lynceus.units import format_duration, format_money

_WIDE = 160
"""Columns when nobody looks: a file or a pipe should not get broken lines."""


def console() -> Console:
    """Standard output; wide when it is not a terminal."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=_WIDE)


def as_table(campaign: Campaign, summaries: Sequence[Summary]) -> None:
    """Print one row per policy, and two lines on what was replayed."""
    out, job = console(), campaign.job
    limits = " and ".join(str(limit) for limit in job.problem.limits) or "no limits"
    heading = f"{len(job.problem.space)} configurations, {job.problem.goal}, {limits}"
    out.print(f"[bold]{escape(job.name)}[/]: {escape(heading)}, budget {format_money(job.problem.budget.usd)}")
    best = ", ".join(f"{name}={value}" for name, value in job.problem.space.point(job.optimum.row).items())
    out.print(f"optimum: {escape(best)} at ${job.optimum.cost_usd:.6g} a run")
    table = Table(caption_justify="left", show_lines=True)
    table.caption = (
        "p50 / p90 over seeds: dollars, multiples of one run of the optimum, and trials until the best run "
        "is at most that many times as dear as the optimum (CNO)"
    )
    table.add_column("policy", style="bold")
    table.add_column("seeds", justify="right")
    for level in summaries[0].levels:
        table.add_column(f"to CNO ≤ {level.cno:g}", justify="right")
    table.add_column("stopped trials", justify="right")
    table.add_column("time of a decision", justify="right")
    ended = campaign.until == "end"
    if ended:
        table.add_column("CNO at stop", justify="right")
    for summary in summaries:
        cells = [summary.policy, str(summary.seeds), *(_level(level, summary.seeds) for level in summary.levels)]
        cells += [_pair(summary.stopped, _short), _pair(summary.decision_s, format_duration)]
        if ended:
            at_stop = summary.cno_at_stop
            cells.append("not asked" if at_stop is None else _pair(at_stop, lambda cno: f"{cno:.3g}"))
        table.add_row(*cells)
    out.print(table)


def _level(level: Level, seeds: int) -> str:
    lines = [_pair(level.usd, format_money)]
    if math.isfinite(level.usd.p50):
        lines += [f"{_pair(level.multiples, _short)} ×", f"{_pair(level.trials, _short)} trials"]
    if level.unreached:
        lines.append(f"{level.unreached} of {seeds} unreached")
    return "\n".join(lines)


def as_json(campaign: Campaign, summaries: Sequence[Summary]) -> str:
    """The same numbers; what was not reached is null."""
    job = campaign.job
    document = {
        "job": job.name,
        "configurations": len(job.problem.space),
        "objective": str(job.problem.goal),
        "limits": [str(limit) for limit in job.problem.limits],
        "deadline_s": job.problem.deadline_s,
        "budget_usd": job.problem.budget.usd,
        "optimum": {"params": job.problem.space.point(job.optimum.row), "cost_usd": job.optimum.cost_usd},
        "until": campaign.until,
        "policies": [dataclasses.asdict(summary) for summary in summaries],
    }
    return json.dumps(_finite(document), indent=2)


def jobs_as_table() -> None:
    """Print the jobs that ship."""
    table = Table()
    for heading in ("job", "configurations", "optimum", "deadline", "table"):
        table.add_column(heading)
    for row in _jobs():
        table.add_row(*(str(row[key]) for key in ("job", "configurations", "optimum", "deadline", "table")))
    console().print(table)


def jobs_as_json() -> str:
    """The jobs that ship."""
    return json.dumps(_jobs(), indent=2)


def _jobs() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in shipped_jobs():
        if not table_present(name):
            rows.append({"job": name, "configurations": "", "optimum": "", "deadline": "", "table": "missing"})
            continue
        job = load_job(name)
        rows.append(
            {
                "job": name,
                "configurations": len(job.problem.space),
                "optimum": format_money(job.optimum.cost_usd),
                "deadline": format_duration(job.problem.deadline_s),
                "table": "present",
            }
        )
    return rows


def _pair(quantiles: Quantiles, shown: Callable[[float], str]) -> str:
    if math.isinf(quantiles.p50):
        return "not reached"
    return f"{shown(quantiles.p50)} / {shown(quantiles.p90) if math.isfinite(quantiles.p90) else 'not reached'}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def _finite(value: Any) -> Any:
    """JSON has no infinity: null stands for 'not reached' and 'unlimited'."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
