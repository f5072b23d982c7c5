"""Routes of live updates: server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from lynceus.server.context import context_of, visitor_of
from lynceus.server.proxies import network_of
from lynceus.server.schemas import StudyName

routes = APIRouter()

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


@routes.get("/events", operation_id="events", response_class=_EventStream, responses=_STREAM)
async def all_events(request: Request) -> Response:
    """An event for every change of any study."""
    return _stream(request, None)


@routes.get("/studies/{name}/events", operation_id="study_events", response_class=_EventStream, responses=_STREAM)
async def study_events(request: Request, name: StudyName) -> Response:
    """An event for every change of this study."""
    await run_in_threadpool(context_of(request).studies.record, name)
    return _stream(request, name)


def _stream(request: Request, name: str | None) -> Response:
    events, address = context_of(request).events, network_of(visitor_of(request).address)
    events.check_capacity(address)
    messages: AsyncIterator[str] = events.messages(address, name)
    return _EventStream(messages, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
