"""Trials by page and filter, without building those that are not shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lynceus.history import End, Observation, Order
from lynceus.insight.records import trial_records
from lynceus.plain import finite
from lynceus.study import Study
from lynceus.trial import STATES, TrialState


@dataclass(frozen=True)
class Filter:
    """Which trials are wanted, and which page of them."""

    state: str | None = None
    where: str | None = None
    """An expression over parameters and columns."""
    feasible: bool = False
    """Only runs that kept every limit."""
    offset: int = 0
    limit: int = 100
    newest_first: bool = False


def listed_trials(study: Study, wanted: Filter) -> dict[str, Any]:
    """A page of trials, and how many there are in all."""
    found = list(_matching(study, wanted))
    found.sort(key=_number, reverse=wanted.newest_first)
    page = found[wanted.offset : wanted.offset + wanted.limit]
    after = wanted.offset + len(page)
    rows = [_record(study, one) for one in page]
    return {"total": len(found), "trials": finite(rows), "next_offset": after if after < len(found) else None}


def _matching(study: Study, wanted: Filter) -> Iterator[Observation | Order]:
    problem = study.problem
    mask = None if wanted.where is None else problem.space.mask(wanted.where)
    for seen in study.history:
        outcome = seen.outcome
        if wanted.state is not None and STATES[outcome.end] != wanted.state:
            continue
        if mask is not None and not mask[seen.row]:
            continue
        if wanted.feasible and not (
            outcome.end is End.FINISHED and problem.meets_limits(seen.row, outcome.seconds, outcome.metrics)
        ):
            continue
        yield seen
    if wanted.state not in (None, TrialState.RUNNING) or wanted.feasible:
        return
    for order in study.pending:
        if mask is None or mask[order.row]:
            yield order


def _number(one: Observation | Order) -> int:
    return one.number if isinstance(one, Order) else one.order.number


def _record(study: Study, one: Observation | Order) -> dict[str, Any]:
    history, pending = ((), (one,)) if isinstance(one, Order) else ((one,), ())
    return trial_records(study.problem, history, pending)[0]
