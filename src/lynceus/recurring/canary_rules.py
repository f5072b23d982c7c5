"""The rules of canaries: one at a time, within the month's allowance, never at excluded times, back to the last good version."""

from __future__ import annotations

from typing import Any

from lynceus.problem.units import format_money
from lynceus.recurring.record import JobRecord, ProductionRun

_DECIDED = ("adopt", "return", "rollback")
ADOPTING = ("adopt", "reprice", "rollback", "retune", "return")
_AS_LARGE = 0.93
"""An input is about as large as another from this share of its size on."""


def refusal(record: JobRecord, now_s: float, reserved_usd: float) -> str | None:
    """Why no canary may start now; None if it may."""
    settings = record.settings
    if settings.held:
        return "changes are held"
    if record.open_canary is not None:
        return f"a canary runs already (run {record.open_canary.run_id})"
    if settings.excludes(now_s):
        return "nothing is tried at this time"
    left = allowance_left(record, now_s)
    if reserved_usd > left:
        return f"trying it could cost {format_money(reserved_usd)}, and {format_money(left)} of this month's allowance is left"
    return None


def allowance_left(record: JobRecord, now_s: float) -> float:
    """Dollars of this month's allowance that are not spent or reserved."""
    settings = record.settings
    spent = sum(extra_usd(run) for run in record.runs if run.canary and settings.same_month(run.ended_s, now_s))
    searches: dict[Any, float] = {}
    for one in record.changes:
        if one.cost_usd and settings.same_month(one.at_s, now_s):
            study = one.evidence.get("study")
            searches[study] = searches.get(study, 0.0) + one.cost_usd
    # A search that began last month gives back what it took of that month's allowance, not of this one's.
    spent += sum(max(usd, 0.0) for usd in searches.values())
    if record.open_canary is not None:
        spent += record.open_canary.reserved_usd
    return max(settings.allowance_usd - spent, 0.0)


def extra_usd(run: ProductionRun) -> float:
    """What a canary cost more than the adopted configuration would have; all of it if its work was lost."""
    cost = run.cost_usd or 0.0
    return max(cost - (run.instead_usd or 0.0), 0.0) if run.informs else cost


def open_trial(record: JobRecord) -> ProductionRun | None:
    """The last run, if it was a canary on which nothing was decided since; None after a failure of the infrastructure."""
    run = next(iter(reversed(record.runs)), None)
    if run is None or not run.canary or run.version == record.current or not (run.informs or run.at_fault):
        return None
    decided = any(one.kind in _DECIDED and one.after_runs >= len(record.runs) for one in record.changes)
    return None if decided else run


def last_good(record: JobRecord) -> int | None:
    """The version that was adopted before the present one and was never returned from; None if there is none."""
    bad = {one.evidence.get("from") for one in record.changes if one.kind == "return"}
    earlier = [one for one in record.changes if one.kind in ADOPTING]
    for change in reversed(earlier):
        if change.version is not None and change.version != record.current and change.version not in bad:
            return change.version
    return next(
        (
            one.number
            for one in reversed(record.versions)
            if one.adopted_s is not None and one.number != record.current and one.number not in bad
        ),
        None,
    )


def adopting_change(record: JobRecord) -> str | None:
    """How the present version became the adopted one: the kind of the last change that did it; None if none is written down."""
    found = [one.kind for one in record.changes if one.kind in ADOPTING and one.version == record.current]
    return found[-1] if found else None


def was_on_time(record: JobRecord, number: int, size: float | None, deadline_s: float) -> bool:
    """Whether the last run of a version with an input about as large as `size` was good; True if it never had one so large."""
    for run in reversed(record.runs):
        if run.version != number or not (run.informs or run.at_fault):
            continue
        if size is None or run.size is None or run.size >= _AS_LARGE * size:
            return not run.at_fault and run.seconds <= deadline_s
        return run.seconds * size / run.size <= deadline_s
    return True
