"""Trials as plain rows: for tables, files and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lynceus.history import End, History, Order
from lynceus.problem import Problem

_STATES = {End.FINISHED: "COMPLETE", End.CAPPED: "TIMEOUT", End.FAILED: "FAIL"}


def trial_records(problem: Problem, history: History, pending: Sequence[Order] = ()) -> list[dict[str, Any]]:
    """One mapping per trial, by number; numbers that are not known are None."""
    rows = []
    for seen in history:
        outcome = seen.outcome
        done = outcome.end is End.FINISHED
        rows.append(
            _ordered(problem, seen.order)
            | {
                "state": _STATES[outcome.end],
                "reason": None if outcome.reason is None else str(outcome.reason),
                "runtime_s": outcome.seconds,
                "cost_usd": problem.cost(seen.row, outcome.seconds) if done else None,
                "charged_usd": outcome.charged_usd,
                "keeps_limits": problem.meets_limits(seen.row, outcome.seconds, outcome.metrics) if done else None,
                "metrics": dict(outcome.metrics),
                "detail": outcome.detail,
            }
        )
    unknown = ("reason", "runtime_s", "cost_usd", "charged_usd", "keeps_limits")
    for order in pending:
        rows.append(
            _ordered(problem, order) | {"state": "RUNNING"} | dict.fromkeys(unknown) | {"metrics": {}, "detail": ""}
        )
    return sorted(rows, key=lambda row: row["number"])


def flat_records(problem: Problem, history: History, pending: Sequence[Order] = ()) -> list[dict[str, Any]]:
    """The same with one column per parameter (`params_…`) and metric (`metrics_…`), the same columns in every row."""
    rows = trial_records(problem, history, pending)
    metrics = sorted({name for row in rows for name in row["metrics"]})
    names = [parameter.name for parameter in problem.space.parameters]
    flat = []
    for row in rows:
        params, reported = row.pop("params"), row.pop("metrics")
        flat.append(
            {"number": row.pop("number"), "state": row.pop("state")}
            | {f"params_{name}": params.get(name) for name in names}
            | row
            | {f"metrics_{name}": reported.get(name) for name in metrics}
        )
    return flat


def _ordered(problem: Problem, order: Order) -> dict[str, Any]:
    return {
        "number": order.number,
        "params": problem.space.point(order.row),
        "price_usd_per_hour": float(problem.price[order.row]) * 3600,
        "timeout_s": None if math.isinf(order.cap_s) else order.cap_s,
        "reserved_usd": None if math.isinf(order.reserved_usd) else order.reserved_usd,
        "why": order.plan.why,
    }
