"""Recurring jobs as JSON, and back. What is unknown, or as usual, is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from lynceus.recurring.record import Basis, Change, OpenCanary, ProductionRun, Version
from lynceus.recurring.settings import Settings
from lynceus.trial.outcome import End, FailureReason

Json = dict[str, Any]


def run_record(run: ProductionRun) -> Json:
    """A production run as JSON."""
    record: Json = {"v": 1, "run_id": run.run_id, "version": run.version, "seconds": run.seconds, "end": str(run.end)}
    for name in ("ended_s", "size", "cost_usd", "price_usd_per_hour", "started_s", "instead_usd"):
        if (value := getattr(run, name)) is not None:
            record[name] = value
    if run.reason is not None:
        record["reason"] = str(run.reason)
    if run.canary:
        record["canary"] = True
    if math.isfinite(run.timeout_s):
        record["timeout_s"] = run.timeout_s
    if run.detail:
        record["detail"] = run.detail
    return record


def run_of(record: Mapping[str, Any]) -> ProductionRun:
    """The production run that a record tells of."""
    reason = record.get("reason")
    return ProductionRun(
        run_id=str(record["run_id"]),
        version=int(record["version"]),
        seconds=float(record["seconds"]),
        ended_s=float(record["ended_s"]),
        size=_number(record.get("size")),
        cost_usd=_number(record.get("cost_usd")),
        price_usd_per_hour=_number(record.get("price_usd_per_hour")),
        started_s=_number(record.get("started_s")),
        end=End(record["end"]),
        reason=None if reason is None else FailureReason(reason),
        canary=bool(record.get("canary", False)),
        timeout_s=float(record.get("timeout_s", math.inf)),
        instead_usd=_number(record.get("instead_usd")),
        detail=str(record.get("detail", "")),
    )


def settings_record(settings: Settings) -> Json:
    """What the user allows, as JSON; settings that are not there are as usual."""
    record = asdict(settings) | {"mode": str(settings.mode), "exclude": list(settings.exclude)}
    return {name: value for name, value in record.items() if value != math.inf}


def settings_of(record: Mapping[str, Any]) -> Settings:
    """The settings that a record tells of."""
    known = {one.name for one in fields(Settings)}
    values = {name: value for name, value in record.items() if name in known}
    return Settings(**(values | {"exclude": tuple(values.get("exclude", ()))}))


def version_facts(version: Version) -> Json:
    """The numbers of a version as JSON."""
    return {
        "evidence": dict(version.evidence),
        "expected": dict(version.expected),
        "basis": version.basis.record(),
    }


def basis_of(facts: Mapping[str, Any]) -> Basis:
    """What was known when a version was chosen."""
    return Basis.of_record(facts.get("basis"))


def change_facts(change: Change) -> Json:
    """The numbers of a change as JSON."""
    return {
        "after_runs": change.after_runs,
        "evidence": dict(change.evidence),
        "expected": dict(change.expected),
        "cost_usd": change.cost_usd,
    }


def canary_of(record: Mapping[str, Any] | None) -> OpenCanary | None:
    """The open canary that a record tells of; None for none."""
    if record is None:
        return None
    return OpenCanary(
        int(record["version"]), str(record["run_id"]), float(record["since_s"]), float(record["reserved_usd"])
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
