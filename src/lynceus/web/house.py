"""What all routes of one server share."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request, Response

from lynceus.cli.opened import Opened
from lynceus.ledger.answers import Once, request_digest
from lynceus.ledger.sql import Storage
from lynceus.plain import Document
from lynceus.web.access import Access
from lynceus.web.clerk import Clerks, Deed
from lynceus.web.deeds import worker_name
from lynceus.web.events import Watch
from lynceus.web.guard import Guard, Visitor
from lynceus.web.memo import Latest
from lynceus.web.shelf import Shelf

SLOW_THREADS = 4
"""Documents that take seconds and are computed at the same time."""


@dataclass(frozen=True)
class House:
    """One storage, and everything that serves it."""

    storage: Storage
    access: Access
    shelf: Shelf
    clerks: Clerks
    watch: Watch
    latest: Latest[Document]
    folder: Path
    """Where job files that come through the API are taken to stand."""
    version: str = importlib.metadata.version("lynceus")

    slow: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(SLOW_THREADS))
    """Threads for documents that models are asked for: however many want one, other requests find a thread."""

    def remembered(self, one: Opened, what: str, compute: Callable[[], Document], *more: Hashable) -> Document:
        """A document about a study as it is now, computed once."""
        record = one.record
        return self.latest.get((record.identity, what, *more), record.sequence, compute)


def house_of(request: Request) -> House:
    """The house that a request came to."""
    house: House = request.app.state.house
    return house


def visitor_of(request: Request) -> Visitor:
    """Who sent a request."""
    visitor: Visitor = request.state.visitor
    return visitor


def guard_of(request: Request) -> Guard:
    """The guard that let it in."""
    guard: Guard = request.app.state.guard
    return guard


Here = Annotated[House, Depends(house_of)]
Who = Annotated[Visitor, Depends(visitor_of)]


def look(request: Request, name: str) -> Opened:
    """A study as it is now."""
    return house_of(request).shelf.look(name)


async def slowly(request: Request, compute: Callable[[], Document]) -> Document:
    """Something that may take seconds, where it does not stand in others' way."""
    return await to_thread.run_sync(compute, limiter=house_of(request).slow)


async def done(
    request: Request, response: Response, study: str, deed: Deed, key: str | None, asked: object
) -> dict[str, Any]:
    """Have a deed done once, and say how long it took."""
    house = house_of(request)
    once = None if key is None else Once(key, request_digest(request.method, request.url.path, asked))
    future = house.clerks.submit(study, deed, worker=worker_name(visitor_of(request).address), once=once)
    result = await asyncio.wrap_future(future)
    house.watch.hurry()
    response.headers["Server-Timing"] = (
        f"decide;dur={result.decided_s * 1e3:.2f}, total;dur={result.waited_s * 1e3:.2f}"
    )
    if result.repeated:
        response.headers["Idempotency-Replayed"] = "true"
    return result.answer
