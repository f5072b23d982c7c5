"""The pages, the documents that they show, live messages, and signing in."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from lynceus.errors import InputError
from lynceus.plain import Document
from lynceus.units import parse_duration
from lynceus.view import insight_view, study_view, subject_of, whatif_view
from lynceus.web import shapes
from lynceus.web.access import COOKIE, SESSION_S, Role
from lynceus.web.examples import answer
from lynceus.web.guard import Visitor
from lynceus.web.house import House, guard_of, house_of, look, slowly, visitor_of
from lynceus.web.routes_read import compared, lines, trial_document
from lynceus.web.shapes import Deadline, StudyName, TrialNumber

STATIC = Path(__file__).with_name("static")

api = APIRouter()
pages = APIRouter(include_in_schema=False)


# What pages show -------------------------------------------------------------------------------------------------------


@api.get("/view/studies", operation_id="studies_view", responses=answer("studies_view"))
def studies_document(request: Request) -> dict[str, Any]:
    """All studies, as the first page shows them, newest first."""
    house = house_of(request)
    return {
        "v": 1,
        "kind": "studies",
        "now_s": time.time(),
        "storage": house.storage.shown_url,
        "studies": lines(house)[::-1],
    }


@api.get("/studies/{name}/view", operation_id="study_view", responses=answer("study_view"))
def study_document(
    request: Request,
    name: StudyName,
    since: Annotated[int, Query(ge=0, le=10_000_000, description="settled trials that are known already")] = 0,
) -> dict[str, Any]:
    """A study as its page shows it; only what is new, with `since`."""
    return study_view(subject_of(look(request, name)), since)


@api.get("/studies/{name}/insight", operation_id="insight_view", responses=answer("insight_view"))
async def insight_document(request: Request, name: StudyName) -> Document:
    """What models make of a study."""

    def compute() -> Document:
        one = look(request, name)
        return house_of(request).remembered(one, "insight", lambda: insight_view(subject_of(one)))

    return await slowly(request, compute)


@api.get("/studies/{name}/trials/{number}/view", operation_id="trial_view", responses=answer("trial_view"))
def trial_view_document(request: Request, name: StudyName, number: TrialNumber) -> dict[str, Any]:
    """A trial as its page shows it."""
    return trial_document(request, name, number)


@api.get("/studies/{name}/what-if/view", operation_id="what_if_view", responses=answer("what_if_view"))
async def what_if_document(request: Request, name: StudyName, deadline: Deadline) -> Document:
    """The answer under another deadline."""
    seconds = parse_duration(deadline, "deadline")
    if not 0 < seconds <= 1e10:
        raise InputError(f"deadline is {seconds:g} s, but a time above 0 is needed, such as 45m.")

    def compute() -> Document:
        one = look(request, name)
        return house_of(request).remembered(one, "what-if view", lambda: whatif_view(subject_of(one), seconds), seconds)

    return await slowly(request, compute)


@api.get("/compare/view", operation_id="compare_view", responses=answer("compare_view"))
async def compare_document(
    request: Request,
    a: Annotated[str, Query(min_length=1, max_length=200, examples=["nightly-sessions"])],
    b: Annotated[str, Query(min_length=1, max_length=200, examples=["nightly-sessions-2"])],
) -> dict[str, Any]:
    """Two studies as their page shows them."""
    return await slowly(request, lambda: compared(request, a, b))


# Live ------------------------------------------------------------------------------------------------------------------

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "server-sent events `changed` and `gone`; a page then asks for what is new",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'event: changed\ndata: {"study": "nightly-sessions", "sequence": 51, "settled": 17}\n\n',
            }
        },
    }
}


class _EventStream(StreamingResponse):
    media_type = "text/event-stream"


@api.get("/events", operation_id="events", response_class=_EventStream, responses=_STREAM)
async def all_events(request: Request) -> Response:
    """A message whenever any study has changed."""
    return _stream(house_of(request), None)


@api.get("/studies/{name}/events", operation_id="study_events", response_class=_EventStream, responses=_STREAM)
async def study_events(request: Request, name: StudyName) -> Response:
    """A message whenever this study has changed."""
    await run_in_threadpool(house_of(request).shelf.record, name)
    return _stream(house_of(request), name)


def _stream(house: House, name: str | None) -> Response:
    house.watch.check_room()
    messages: AsyncIterator[str] = house.watch.messages(name)
    return _EventStream(messages, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


# Signing in ------------------------------------------------------------------------------------------------------------


@api.get("/health", operation_id="health", response_model=shapes.Health, responses=answer("health"))
def health(request: Request) -> dict[str, Any]:
    """Whether the server lives and reaches its storage."""
    house = house_of(request)
    house.storage.setting("health")
    return {"status": "ok", "version": house.version}


@api.get("/session", operation_id="session", response_model=shapes.Session, responses=answer("session"))
async def session(request: Request) -> dict[str, Any]:
    """What this browser may do."""
    return _session(house_of(request), visitor_of(request))


@api.post("/session", operation_id="sign_in", response_model=shapes.Session, responses=answer("session"))
async def sign_in(request: Request, response: Response, body: shapes.SignIn) -> dict[str, Any]:
    """Sign a browser in with a token; it stays signed in for twelve hours."""
    house, visitor, now = house_of(request), visitor_of(request), time.time()
    role = guard_of(request).check_token(body.token, visitor.address, now)
    cookie = house.access.new_session(role, now)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SESSION_S),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return _session(house, Visitor(role, visitor.address, cookie))


@api.delete("/session", operation_id="sign_out", response_model=shapes.Session, responses=answer("session"))
async def sign_out(request: Request, response: Response) -> dict[str, Any]:
    """Sign this browser out."""
    house = house_of(request)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return _session(house, Visitor(house.access.without_token, visitor_of(request).address))


def _session(house: House, visitor: Visitor) -> dict[str, Any]:
    return {
        "signed_in": visitor.cookie is not None,
        "can_read": visitor.role is not Role.NOBODY,
        "can_write": visitor.role is Role.WRITE,
        "csrf": None if visitor.cookie is None else house.access.csrf_token(visitor.cookie),
        "needs_token": house.access.read_token is not None,
        "writes": house.access.write_token is not None,
        "version": house.version,
    }


# Pages -----------------------------------------------------------------------------------------------------------------


def _page(name: str, status: int = 200) -> FileResponse:
    return FileResponse(
        STATIC / name, status, media_type="text/html; charset=utf-8", headers={"Cache-Control": "no-cache"}
    )


@pages.get("/")
def index() -> FileResponse:
    """All studies."""
    return _page("index.html")


@pages.get("/studies/{name}")
def study_page(name: str) -> FileResponse:
    """One study."""
    return _page("study.html")


@pages.get("/studies/{name}/trials/{number}")
def trial_page(name: str, number: str) -> FileResponse:
    """One trial."""
    return _page("trial.html")


@pages.get("/compare")
def compare_page() -> FileResponse:
    """Two studies."""
    return _page("compare.html")


@pages.get("/login")
def login_page() -> FileResponse:
    """Sign in."""
    return _page("login.html")


def lost_page() -> FileResponse:
    """Where there is nothing."""
    return _page("lost.html", 404)


class Assets(StaticFiles):
    """Scripts, styles and pictures of the pages; browsers ask each time whether they are still the newest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or 404."""
        answered = await super().get_response(path, scope)
        answered.headers["cache-control"] = "no-cache"
        return answered
