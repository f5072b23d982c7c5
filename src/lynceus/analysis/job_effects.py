"""What changes of a recurring job really brought: facts of its runs, before and after, per unit of input where sizes are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.recurring.record import JobRecord, ProductionRun
from lynceus.trial.outcome import End


@dataclass(frozen=True, kw_only=True)
class Brought:
    """The runs of a version while it was in production, beside those of the one before."""

    runs: int
    """Finished runs of it."""
    runtime_s: float
    """Mean of them."""
    cost_usd: float
    """Mean of them."""
    late: int
    """Runs of it that were late."""
    saving: float
    """Share of the cost that a run saves against the version before, at the same input size; negative if it costs more."""


@dataclass(frozen=True, kw_only=True)
class JobTotals:
    """A job in numbers."""

    runs: int
    canaries: int
    failed: int
    late: int
    """Runs that took longer than the deadline."""
    cost_usd: float
    """All runs together."""
    search_usd: float
    """What studies have cost beside them."""
    saved_usd: float
    """Against the first version: what its runs cost per unit of input, times the inputs since, less what the runs did cost."""


def brought(record: JobRecord, number: int, before: int | None, deadline_s: float) -> Brought | None:
    """What a version brought; None before a run of it has finished."""
    mine = finished(record, number)
    if not mine:
        return None
    former = [] if before is None else finished(record, before)
    own, other = unit_cost(mine), unit_cost(former, sized=_all_sized(mine))
    return Brought(
        runs=len(mine),
        runtime_s=sum(run.seconds for run in mine) / len(mine),
        cost_usd=sum(run.cost_usd or 0.0 for run in mine) / len(mine),
        late=sum(run.seconds > deadline_s for run in mine),
        saving=1.0 - own / other if other else math.nan,
    )


def totals(record: JobRecord, deadline_s: float) -> JobTotals:
    """A job in numbers."""
    runs = record.runs
    first = finished(record, record.versions[0].number) if record.versions else []
    later = [run for run in runs if run.version != record.versions[0].number] if record.versions else []
    sized = _all_sized(first) and _all_sized(later)
    rate = unit_cost(first, sized=sized)
    instead = sum(rate * ((run.size or 0.0) if sized else 1.0) for run in later if run.end is End.FINISHED)
    saved = instead - sum(run.cost_usd or 0.0 for run in later) if first else math.nan
    return JobTotals(
        runs=len(runs),
        canaries=sum(run.canary for run in runs),
        failed=sum(run.end is not End.FINISHED for run in runs),
        late=sum(run.end is End.FINISHED and run.seconds > deadline_s for run in runs),
        cost_usd=sum(run.cost_usd or 0.0 for run in runs),
        search_usd=sum(change.cost_usd for change in record.changes),
        saved_usd=saved,
    )


def finished(record: JobRecord, number: int) -> list[ProductionRun]:
    """The finished runs of a version."""
    return [run for run in record.runs if run.version == number and run.end is End.FINISHED]


def unit_cost(runs: Sequence[ProductionRun], *, sized: bool | None = None) -> float:
    """Dollars per unit of input, or per run where a size is not known; 0 without runs."""
    if not runs:
        return 0.0
    sized = _all_sized(runs) if sized is None else sized and _all_sized(runs)
    amount = sum(run.size or 0.0 for run in runs) if sized else float(len(runs))
    return sum(run.cost_usd or 0.0 for run in runs) / amount


def _all_sized(runs: Sequence[ProductionRun]) -> bool:
    return all(run.size is not None for run in runs)
