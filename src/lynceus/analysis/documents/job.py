"""A recurring job as one document: for its page, the API and `lynceus job -o json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lynceus.analysis.documents.json import Document, page_document, short, to_json
from lynceus.analysis.job_effects import Brought, brought, totals
from lynceus.problem.problem import Problem
from lynceus.recurring.action import Action
from lynceus.recurring.canary_rules import allowance_left
from lynceus.recurring.forecast import row_of
from lynceus.recurring.record import Change, JobRecord, ProductionRun, Version
from lynceus.recurring.watch import RunCheck, Watch, watch
from lynceus.trial.outcome import End

MAX_RUNS = 2_000
"""Newest runs that a document has."""


def job_document(record: JobRecord, problem: Problem, action: Action, now_s: float) -> Document:
    """A job: what is in production, what was, every run beside what was expected of it, what to do next and why."""
    deadline_s = min(problem.deadline_s, record.settings.deadline_s)
    seen = watch(record, usd_per_hour=_price(record, problem), deadline_s=deadline_s)
    changes = {one.version: one for one in record.changes if "before" in one.evidence or one.kind == "adopt"}
    effects = {
        number: brought(record, number, change.evidence.get("before"), deadline_s)
        for number, change in changes.items()
        if number is not None
    }
    fields = {
        "now_s": now_s,
        "name": record.name,
        "identity": record.identity,
        "settings": asdict(record.settings),
        "deadline_s": deadline_s,
        "version": None if record.adopted is None else _version(record.adopted, effects),
        "versions": [_version(one, effects) for one in record.versions],
        "runs": _runs(record, seen, deadline_s),
        "watch": seen.record(),
        "next": _action(action),
        "changes": [_change(one, effects) for one in record.changes],
        "totals": totals(record, deadline_s),
        "allowance_left_usd": allowance_left(record, now_s),
        "open_canary": record.open_canary,
    }
    return page_document("job", fields)


def job_line(record: JobRecord, deadline_s: float) -> Document:
    """A job in a line of a list."""
    last = record.runs[-1] if record.runs else None
    version = record.adopted
    line: Document = to_json(
        {
            "name": record.name,
            "mode": str(record.settings.mode),
            "held": record.settings.held,
            "version": record.current,
            "params": {} if version is None else dict(version.params),
            "since_s": None if version is None else version.adopted_s,
            "last_run": None if last is None else _run(last, None, deadline_s),
            "open_canary": record.open_canary,
            "totals": totals(record, deadline_s),
        }
    )
    return line


def _version(version: Version, effects: Mapping[int, Brought | None]) -> dict[str, Any]:
    return {
        "number": version.number,
        "params": dict(version.params),
        "source": version.source,
        "at_s": version.at_s,
        "adopted_s": version.adopted_s,
        "by": version.by,
        "reason": version.reason,
        "expected": dict(version.expected),
        "brought": effects.get(version.number),
    }


def _change(change: Change, effects: Mapping[int, Brought | None]) -> dict[str, Any]:
    adopts = change.version is not None and "before" in change.evidence
    return {
        "at_s": change.at_s,
        "kind": change.kind,
        "version": change.version,
        "by": change.by,
        "reason": change.reason,
        "evidence": dict(change.evidence),
        "expected": dict(change.expected),
        "cost_usd": change.cost_usd,
        "brought": effects.get(change.version) if adopts and change.version is not None else None,
    }


def _runs(record: JobRecord, seen: Watch, deadline_s: float) -> list[dict[str, Any]]:
    checks = {one.run_id: one for one in seen.checks}
    return [_run(run, checks.get(run.run_id), deadline_s) for run in record.runs[-MAX_RUNS:]]


def _run(run: ProductionRun, check: RunCheck | None, deadline_s: float) -> dict[str, Any]:
    unit = None if run.size is None or run.cost_usd is None else run.cost_usd / run.size
    return {
        "run_id": run.run_id,
        "version": run.version,
        "canary": run.canary,
        "ended_s": run.ended_s,
        "runtime_s": short(run.seconds),
        "size": run.size,
        "cost_usd": short(run.cost_usd),
        "usd_per_unit": short(unit),
        "state": {End.FINISHED: "COMPLETE", End.TIMEOUT: "TIMEOUT", End.FAILED: "FAIL"}[run.end],
        "reason": None if run.reason is None else str(run.reason),
        "late": run.end is End.FINISHED and run.seconds > deadline_s,
        "expected_s": None if check is None else short(check.expected_s),
        "low_s": None if check is None else short(check.low_s),
        "high_s": None if check is None else short(check.high_s),
        "detail": run.detail,
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "kind": str(action.kind),
        "would": action.evidence.get("would"),
        "reason": action.reason,
        "params": None if action.params is None else dict(action.params),
        "version": action.version,
        "timeout_s": action.timeout_s,
        "reserved_usd": action.reserved_usd,
        "budget_usd": action.budget_usd,
        "effect": action.effect.record(),
    }


def _price(record: JobRecord, problem: Problem) -> float | None:
    row = None if record.adopted is None else row_of(problem, record.adopted.params)
    return None if row is None else float(problem.price[row]) * 3600
