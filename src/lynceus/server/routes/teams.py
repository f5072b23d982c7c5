"""Routes of what a team shares: budgets per month and named tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from lynceus.analysis.shared_budgets import SharedBudgetUse
from lynceus.problem.units import parse_duration, parse_money
from lynceus.server import team_schemas
from lynceus.server.commands import MAX_USD
from lynceus.server.context import context_of, guard_of, visitor_of
from lynceus.server.errors import HttpError
from lynceus.server.examples import example
from lynceus.server.team_schemas import AccountName, TokenName
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.tokens import TokenStore
from lynceus.trial.shared_budget import Account

routes = APIRouter()


@routes.get("/budgets", operation_id="budgets", response_model=team_schemas.Budgets, responses=example("budgets"))
def budgets(request: Request) -> dict[str, Any]:
    """What projects and people may spend in this month over all studies, and have spent."""
    found = BudgetStore(context_of(request).storage).all()
    return {"budgets": [asdict(SharedBudgetUse.of(one)) for one in found]}


@routes.put(
    "/budgets/{account:path}",
    operation_id="set_budget",
    response_model=team_schemas.Budget,
    responses=example("set_budget"),
)
def set_budget(request: Request, account: AccountName, body: team_schemas.SetBudget) -> dict[str, Any]:
    """Limit what a project or a person may spend in a calendar month. Trials that would exceed it do not start."""
    usd = parse_money(body.amount, "amount")
    if usd > MAX_USD:
        raise HttpError(422, f"amount: ${usd:g} is too much; give at most ${MAX_USD:g}.")
    store = BudgetStore(context_of(request).storage)
    return asdict(SharedBudgetUse.of(store.set(Account.parse(account), usd, by=visitor_of(request).author)))


@routes.delete(
    "/budgets/{account:path}",
    operation_id="remove_budget",
    response_model=team_schemas.RemovedBudget,
    responses=example("remove_budget"),
)
def remove_budget(request: Request, account: AccountName) -> dict[str, Any]:
    """Let a project or a person spend without a shared limit; the budgets of studies stay."""
    who = Account.parse(account)
    BudgetStore(context_of(request).storage).remove(who, by=visitor_of(request).author)
    return {"account": str(who), "usd": None}


@routes.get("/tokens", operation_id="tokens", response_model=team_schemas.Tokens, responses=example("tokens"))
def tokens(request: Request) -> dict[str, Any]:
    """Every named token: role, who made it, when it was last used and when it expires."""
    return {"tokens": [asdict(one) for one in TokenStore(context_of(request).storage).all()]}


@routes.post(
    "/tokens",
    operation_id="add_token",
    status_code=201,
    response_model=team_schemas.NewToken,
    responses=example("add_token", 201),
)
async def add_token(request: Request, body: team_schemas.AddToken) -> dict[str, Any]:
    """Make a token. The answer has its secret, which is stored nowhere: after a lost answer, revoke it and make another one."""
    known, by = guard_of(request).tokens, visitor_of(request).author
    lasts_s = None if body.expires is None else parse_duration(body.expires, "expires")
    made, secret = await run_in_threadpool(known.store.add, body.name, body.role, by=by, lasts_s=lasts_s)
    known.forget()
    return {**asdict(made), "token": secret}


@routes.delete(
    "/tokens/{name}",
    operation_id="revoke_token",
    response_model=team_schemas.RevokedToken,
    responses=example("revoke_token"),
)
async def revoke_token(request: Request, name: TokenName) -> dict[str, Any]:
    """Accept a token no longer: here from now on, on other servers of the storage within two seconds."""
    known, by = guard_of(request).tokens, visitor_of(request).author
    await run_in_threadpool(known.store.revoke, name, by=by)
    known.forget()
    return {"name": name, "role": None}
