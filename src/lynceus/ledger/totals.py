"""A study in sums, computed by the database: whoever only looks builds no order and no outcome of thousands of trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from lynceus.history import End
from lynceus.ledger.schema import trials


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a study has used, and how its trials ended."""

    settled: int
    stopped_early: int
    failed: int
    running: int
    spent_usd: float
    reserved_usd: float
    """What open trials may still be charged at most."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that came to its end."""

    number: int
    row: int
    seconds: float
    metrics: dict[str, float]
    """Those that were asked for, and that it reported."""


def read_totals(connection: Connection, study_id: int) -> Totals:
    """The sums of a study."""
    end = trials.c.outcome["end"].as_string()
    settled = trials.c.rank.is_not(None)
    row = connection.execute(
        select(
            func.count(trials.c.rank),
            func.count(case((settled & (end == str(End.CAPPED)), 1))),
            func.count(case((settled & (end == str(End.FAILED)), 1))),
            func.count(case((~settled, 1))),
            func.sum(case((settled, trials.c.outcome["charged_usd"].as_float()))),
        ).where(trials.c.study_id == study_id)
    ).one()
    # Few are open, and what they reserve may be infinite, which databases write in different ways.
    open_orders = connection.execute(select(trials.c.ordered).where(trials.c.study_id == study_id, ~settled)).scalars()
    reserved = sum(float(order["reserved_usd"]) for order in open_orders)
    return Totals(row[0], row[1], row[2], row[3], float(row[4] or 0.0), reserved)


def read_finished(connection: Connection, study_id: int, metrics: Sequence[str]) -> Iterator[FinishedRun]:
    """The runs that came to their end, in the order of settling, with some of their metrics."""
    outcome = trials.c.outcome
    # Metrics come as JSON: as a number, SQLite would read the text "inf" as 0.
    columns = [trials.c.number, trials.c.ordered["row"].as_integer(), outcome["seconds"].as_float()]
    wanted = select(*columns, *([outcome["metrics"].as_json()] if metrics else [])).where(
        trials.c.study_id == study_id, trials.c.rank.is_not(None), outcome["end"].as_string() == str(End.FINISHED)
    )
    for number, row, seconds, *reported in connection.execute(wanted.order_by(trials.c.rank)):
        values = (reported[0] or {}) if reported else {}
        known = {name: float(values[name]) for name in metrics if values.get(name) is not None}
        yield FinishedRun(number, row, seconds, known)
