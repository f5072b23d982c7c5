"""Routes of sessions (signing in and out with a browser) and the health check."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from lynceus.server import schemas
from lynceus.server.access import COOKIE, SESSION_S, Role
from lynceus.server.context import Context, context_of, guard_of, visitor_of
from lynceus.server.examples import example
from lynceus.server.guard import Visitor

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
    return _session(context_of(request), visitor_of(request))


@routes.post("/session", operation_id="sign_in", response_model=schemas.Session, responses=example("session"))
async def sign_in(request: Request, response: Response, body: schemas.SignIn) -> dict[str, Any]:
    """Sign a browser in with a token, for twelve hours."""
    context, visitor, now = context_of(request), visitor_of(request), time.time()
    role = guard_of(request).check_token(body.token, visitor.address, now)
    cookie = context.access.new_session(role, now)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SESSION_S),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return _session(context, Visitor(role, visitor.address, cookie))


@routes.delete("/session", operation_id="sign_out", response_model=schemas.Session, responses=example("session"))
async def sign_out(request: Request, response: Response) -> dict[str, Any]:
    """Sign this browser out; its session is refused from then on."""
    context, visitor = context_of(request), visitor_of(request)
    response.delete_cookie(COOKIE, path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict")
    if visitor.cookie is not None:
        await guard_of(request).signed_out.end(visitor.cookie)
    return _session(context, Visitor(context.access.anonymous, visitor.address))


def _session(context: Context, visitor: Visitor) -> dict[str, Any]:
    return {
        "signed_in": visitor.cookie is not None,
        "can_read": visitor.role is not Role.NONE,
        "can_write": visitor.role is Role.WRITE,
        "csrf": None if visitor.cookie is None else context.access.csrf_token(visitor.cookie),
        "needs_token": context.access.read_token is not None,
        "writes": context.access.write_token is not None,
        "version": context.version,
    }
