"""What is left of the budgets that studies share, computed from what their runs were charged and have reserved.

A budget's row is locked by whoever reserves money from it, until that is committed: of two workers with different studies, the second
one sees what the first has reserved. SQLite has one writer at a time anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    String,
    and_,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    union_all,
)

from lynceus.storage.sql.tables import budgets, job_runs, jobs, past_charges, studies, trials
from lynceus.trial.shared_budget import Account, Month, Payer, PayerKind, SharedBudget

_CHARGED, _RESERVED = "charged", "reserved"


def shared_budgets(
    connection: Connection, payer: Payer, now_s: float, *, hold: bool = False
) -> tuple[SharedBudget, ...]:
    """The budgets on which runs of a payer draw; with `hold`, nobody else reserves money from them until the transaction ends."""
    if not (accounts := payer.accounts):
        return ()
    return budgets_of(connection, now_s, accounts, hold=hold)


def budgets_of(
    connection: Connection, now_s: float, accounts: Sequence[Account] | None = None, *, hold: bool = False
) -> tuple[SharedBudget, ...]:
    """The budgets of these projects and people, where they have one; of all by default."""
    wanted = select(budgets).order_by(budgets.c.kind, budgets.c.name)
    if accounts is not None:
        wanted = wanted.where(
            or_(*(and_(budgets.c.kind == str(one.kind), budgets.c.name == one.name) for one in accounts))
        )
    month = Month.of(now_s)
    # All rows first: what others have committed while we waited for a lock is seen by statements that begin afterwards.
    rows = connection.execute(wanted.with_for_update() if hold else wanted).all()
    return tuple(_used(connection, Account(PayerKind(row.kind), row.name), float(row.usd), month) for row in rows)


def _used(connection: Connection, account: Account, usd: float, month: Month) -> SharedBudget:
    """A budget and what is used of it. One statement: a trial that settles meanwhile is seen either open or settled."""
    column = str(account.kind)
    found: CursorResult[str, str | None] = connection.execute(
        union_all(
            *_of_studies(connection, studies.c[column] == account.name, month),
            *_of_jobs(connection, jobs.c[column] == account.name, month),
            select(literal(_CHARGED), cast(func.sum(past_charges.c.usd), String)).where(
                past_charges.c[column] == account.name, past_charges.c.month_s == month.begin_s
            ),
        )
    )
    sums = {_CHARGED: 0.0, _RESERVED: 0.0}
    for kind, text in found:
        # A run without a timeout that a finite budget allows has the price 0; it reserves "inf", and will be charged nothing.
        value = 0.0 if text is None else float(text)
        sums[kind] += value if math.isfinite(value) else 0.0
    return SharedBudget(account, usd, month, sums[_CHARGED], sums[_RESERVED])


def _of_studies(connection: Connection, mine: ColumnElement[bool], month: Month) -> Iterable[Select[str, str]]:
    joined = trials.join(studies, trials.c.study_id == studies.c.id)
    charged = cast(func.sum(trials.c.outcome["charged_usd"].as_float()), String)
    yield (
        select(literal(_CHARGED), charged)
        .select_from(joined)
        .where(
            mine,
            _within(trials.c.settled_s, month),
            trials.c.rank.is_not(None),
            _readable(connection, trials.c.outcome),
        )
    )
    yield (
        select(literal(_RESERVED), trials.c.ordered["reserved_usd"].as_string())
        .select_from(joined)
        .where(mine, trials.c.rank.is_(None), _readable(connection, trials.c.ordered))
    )


def _of_jobs(connection: Connection, mine: ColumnElement[bool], month: Month) -> Iterable[Select[str, str]]:
    charged = cast(func.sum(job_runs.c.facts["cost_usd"].as_float()), String)
    yield (
        select(literal(_CHARGED), charged)
        .select_from(job_runs.join(jobs, job_runs.c.job_id == jobs.c.id))
        .where(mine, _within(job_runs.c.ended_s, month), _readable(connection, job_runs.c.facts))
    )
    yield select(literal(_RESERVED), jobs.c.canary["reserved_usd"].as_string()).where(
        mine, jobs.c.canary.is_not(None), _readable(connection, jobs.c.canary)
    )


def _within(moment: ColumnElement[float], month: Month) -> ColumnElement[bool]:
    return (moment >= month.begin_s) & (moment < month.end_s)


def _readable(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a column holds JSON: SQLite takes any text, and one damaged row must not stop all studies of a project."""
    return func.json_valid(column) == 1 if connection.dialect.name == "sqlite" else true()


def keep_study_charges(connection: Connection, study_ids: Sequence[int], now_s: float) -> None:
    """Remember what studies that are about to be deleted were charged in this month."""
    month = Month.of(now_s)
    mine = studies.c.id.in_(study_ids)
    charged = func.sum(trials.c.outcome["charged_usd"].as_float())
    wanted = (
        select(studies.c.project, studies.c.owner, charged)
        .join_from(studies, trials, trials.c.study_id == studies.c.id)
        .where(
            mine,
            _within(trials.c.settled_s, month),
            trials.c.rank.is_not(None),
            _readable(connection, trials.c.outcome),
        )
    )
    _keep(connection, wanted.group_by(studies.c.project, studies.c.owner), month)


def keep_job_charges(connection: Connection, job: str, now_s: float) -> None:
    """The same for the production runs of a recurring job."""
    month = Month.of(now_s)
    wanted = (
        select(jobs.c.project, jobs.c.owner, func.sum(job_runs.c.facts["cost_usd"].as_float()))
        .join_from(jobs, job_runs, job_runs.c.job_id == jobs.c.id)
        .where(jobs.c.name == job, _within(job_runs.c.ended_s, month), _readable(connection, job_runs.c.facts))
    )
    _keep(connection, wanted.group_by(jobs.c.project, jobs.c.owner), month)


def _keep(connection: Connection, charges: Select[Any], month: Month) -> None:
    rows = [
        {"project": project, "owner": owner, "month_s": month.begin_s, "usd": float(usd)}
        for project, owner, usd in connection.execute(charges).all()
        if usd and (project is not None or owner is not None)
    ]
    if rows:
        connection.execute(insert(past_charges), rows)
