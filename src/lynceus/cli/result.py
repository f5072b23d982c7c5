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

from lynceus.errors import LynceusError
from lynceus.replay import Campaign, Quantiles, Summary, shipped_jobs
from lynceus.units import format_duration, format_money

_WIDE = 160
"""Columns when nobody looks: a file or a pipe should not get broken lines."""


def console() -> Console:
    """Standard output; wide when it is not a terminal."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=_WIDE)


def as_table(campaign: Campaign, summaries: Sequence[Summary]) -> None:
    """Print one row per policy, and a line on what was replayed."""
    out, job = console(), campaign.job
    limits = ", ".join(str(limit) for limit in job.problem.limits) or "none"
    budget = format_money(job.problem.budget.usd)
    out.print(
        f"[bold]{escape(job.name)}[/]: {len(job.problem.space)} configurations, {job.problem.goal}, limits {escape(limits)}, budget {budget}"
    )
    out.print(f"optimum {_point(job.problem.space.point(job.optimum.row))}: {format_money(job.optimum.cost_usd)} a run")
    table = Table(title_justify="left", caption_justify="left")
    table.caption = (
        "p50 / p90 over seeds; money until the cost of the best run is at most that multiple (CNO) of the optimum's"
    )
    table.add_column("policy", style="bold")
    table.add_column("seeds", justify="right")
    for level in summaries[0].levels:
        table.add_column(f"$ to CNO {level.cno:g}", justify="right")
        table.add_column("× optimum", justify="right")
        table.add_column("trials", justify="right")
    table.add_column("unreached", justify="right")
    table.add_column("stopped", justify="right")
    table.add_column("s/decision", justify="right")
    ended = any(summary.cno_at_stop for summary in summaries)
    if ended:
        table.add_column("CNO at stop", justify="right")
    for summary in summaries:
        cells = [summary.policy, str(summary.seeds)]
        for level in summary.levels:
            cells += [_pair(level.usd, format_money), _pair(level.multiples, _short), _pair(level.trials, _short)]
        cells.append(" / ".join(str(level.unreached) for level in summary.levels))
        cells += [_pair(summary.stopped, _short), _pair(summary.decision_s, format_duration)]
        if ended:
            cells.append("—" if summary.cno_at_stop is None else _pair(summary.cno_at_stop, lambda cno: f"{cno:.3g}"))
        table.add_row(*cells)
    out.print(table)


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
    from lynceus.replay import load_job

    rows: list[dict[str, Any]] = []
    for name in shipped_jobs():
        try:
            job = load_job(name)
        except LynceusError:
            rows.append({"job": name, "configurations": "", "optimum": "", "deadline": "", "table": "missing"})
            continue
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


def _point(params: dict[str, Any]) -> str:
    return escape(", ".join(f"{name}={value}" for name, value in params.items()))


def _finite(value: Any) -> Any:
    """JSON has no infinity: null stands for 'not reached' and 'unlimited'."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
