"""Routes of sessions (signing in and out with a browser) and the health check."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from lynceus.server import schemas
from lynceus.server.access import COOKIE, SESSION_S
from lynceus.server.context import context_of, guard_of, visitor_of
from lynceus.server.examples import example
from lynceus.server.guard import Visitor
from lynceus.storage.access_token import PREFIX, Role

routes = APIRouter()


@routes.get("/health", operation_id="health", response_model=schemas.Health, responses=example("health"))
def health(request: Request) -> dict[str, Any]:
    """Whether the server runs and reaches its storage."""
    context = context_of(request)
    context.storage.setting("health")
    return {"status": "ok", "version": context.version}


@routes.get("/session", operation_id="session", response_model=schemas.Session, responses=example("session"))
async def session(request: Request) -> dict[str, Any]:
    """What this browser is allowed to do."""
    return await _session(request, visitor_of(request))


@routes.post("/session", operation_id="sign_in", response_model=schemas.Session, responses=example("session"))
async def sign_in(request: Request, response: Response, body: schemas.SignIn) -> dict[str, Any]:
    """Sign a browser in with a token, for twelve hours."""
    guard, visitor, now = guard_of(request), visitor_of(request), time.time()
    holder = await guard.check_token(body.token, visitor.address, now)
    if holder.named is None:
        cookie = guard.access.new_session(holder.role, now)
    else:
        cookie = await guard.tokens.begin_session(holder.named)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SESSION_S),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return await _session(request, Visitor(holder.role, visitor.address, cookie, holder.name))


@routes.delete("/session", operation_id="sign_out", response_model=schemas.Session, responses=example("session"))
async def sign_out(request: Request, response: Response) -> dict[str, Any]:
    """Sign this browser out; its session is refused from then on."""
    guard, visitor = guard_of(request), visitor_of(request)
    response.delete_cookie(COOKIE, path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict")
    if visitor.cookie is not None and visitor.cookie.startswith(PREFIX):
        await guard.tokens.end_session(visitor.cookie)
    elif visitor.cookie is not None:
        await guard.signed_out.end(visitor.cookie)
    return await _session(request, Visitor(guard.access.anonymous, visitor.address))


async def _session(request: Request, visitor: Visitor) -> dict[str, Any]:
    guard, role = guard_of(request), visitor.role
    return {
        "signed_in": visitor.cookie is not None,
        "role": role,
        "token": visitor.token,
        "can_read": role is not None,
        "can_write": role is not None and role.allows(Role.RUNNER),
        "csrf": None if visitor.cookie is None else guard.access.csrf_token(visitor.cookie),
        "needs_token": guard.access.anonymous is None,
        "writes": guard.access.write_token is not None or await guard.tokens.writers(),
        "version": context_of(request).version,
    }
