"""A study in sums, computed by the database, so that listing studies does not read thousands of trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, func, select

from lynceus.storage.sql.rows import TrialRecord
from lynceus.storage.sql.tables import trials
from lynceus.trial.order import UNORDERED, Order, Plan, Purpose
from lynceus.trial.outcome import End, Observation, Outcome

_NO_PLAN = Plan(0, why="")


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a study has used, and how its trials ended."""

    settled: int
    counted: int
    """Settled trials that the study ordered: they count against the trials of its budget."""
    stopped_early: int
    failed: int
    running: int
    spent_usd: float
    reserved_usd: float
    """What open trials may still be charged at most."""


def read_totals(connection: Connection, study_id: int) -> Totals:
    """The sums of a study."""
    end = trials.c.outcome["end"].as_string()
    settled = trials.c.rank.is_not(None)
    row = connection.execute(
        select(
            func.count(trials.c.rank),
            func.count(case((settled & _ordered_by_study(), 1))),
            func.count(case((settled & (end == str(End.TIMEOUT)), 1))),
            func.count(case((settled & (end == str(End.FAILED)), 1))),
            func.count(case((~settled, 1))),
            func.sum(case((settled, trials.c.outcome["charged_usd"].as_float()))),
        ).where(trials.c.study_id == study_id)
    ).one()
    # Few are open, and what they reserve may be infinite, which databases write in different ways.
    open_orders = connection.execute(select(trials.c.ordered).where(trials.c.study_id == study_id, ~settled)).scalars()
    reserved = sum(float(order["reserved_usd"]) for order in open_orders)
    return Totals(row[0], row[1], row[2], row[3], row[4], float(row[5] or 0.0), reserved)


def _ordered_by_study() -> ColumnElement[bool]:
    """Whether a trial is neither imported nor a further row of another one. Records of version 0.1 tell it in their reason."""
    plan = trials.c.ordered["plan"]
    former = case((plan["why"].as_string().startswith("imported"), str(Purpose.IMPORT)), else_="")
    return func.coalesce(plan["purpose"].as_string(), former).not_in([str(one) for one in UNORDERED])


def read_comparable(connection: Connection, study_id: int, metrics: Sequence[str]) -> Iterator[Observation]:
    """Finished and stopped runs in the order of settling: all that decides which configuration is the incumbent.

    These observations hold only number, row, time and the given metrics; the rest of order and outcome is left out.
    """
    outcome = trials.c.outcome
    # Metrics come as JSON: as a number, SQLite would read the text "inf" as 0.
    end = outcome["end"].as_string()
    columns = [trials.c.number, trials.c.ordered["row"].as_integer(), end, outcome["seconds"].as_float()]
    wanted = select(*columns, *([outcome["metrics"].as_json()] if metrics else [])).where(
        trials.c.study_id == study_id, trials.c.rank.is_not(None), end != str(End.FAILED)
    )
    for number, row, ended, seconds, *reported in connection.execute(wanted.order_by(trials.c.rank)):
        values = (reported[0] or {}) if reported else {}
        known = {name: float(values[name]) for name in metrics if values.get(name) is not None}
        yield Observation(Order(number, row, math.inf, 0.0, _NO_PLAN), Outcome(End(ended), seconds, 0.0, known), None)


def count_totals(records: Iterable[TrialRecord]) -> Totals:
    """The same sums over trials that were read, for texts that a database cannot take apart."""
    read = list(records)
    done = [one.outcome for one in read if one.outcome is not None]
    return Totals(
        settled=len(done),
        counted=sum(one.outcome is not None and one.order.plan.purpose not in UNORDERED for one in read),
        stopped_early=sum(outcome.end is End.TIMEOUT for outcome in done),
        failed=sum(outcome.end is End.FAILED for outcome in done),
        running=len(read) - len(done),
        spent_usd=sum(outcome.charged_usd for outcome in done),
        reserved_usd=sum(one.order.reserved_usd for one in read if one.outcome is None),
    )


def select_comparable(records: Iterable[TrialRecord], metrics: Sequence[str]) -> Iterator[Observation]:
    """What `read_comparable` returns, of trials that were read."""
    settled = [(one.rank, one) for one in records if one.rank is not None]
    for _, one in sorted(settled, key=lambda pair: pair[0]):
        outcome = one.outcome
        if outcome is not None and outcome.end is not End.FAILED:
            known = {name: outcome.metrics[name] for name in metrics if name in outcome.metrics}
            order = Order(one.number, one.order.row, math.inf, 0.0, _NO_PLAN)
            yield Observation(order, Outcome(outcome.end, outcome.seconds, 0.0, known), None)
