"""The application: one storage, the API, the pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lynceus.errors import MissingExtraError
from lynceus.ledger.sql import Storage

try:
    from fastapi import FastAPI
except ImportError:
    raise MissingExtraError("The dashboard and its API", "web") from None

from lynceus.web import faults, openapi, routes_pages, routes_read, routes_write
from lynceus.web.access import Access
from lynceus.web.attempts import Attempts
from lynceus.web.clerk import THREADS, Clerks
from lynceus.web.couriers import Couriers
from lynceus.web.events import Watch
from lynceus.web.guard import API, MOST_BYTES, Guard
from lynceus.web.house import House
from lynceus.web.memo import Latest
from lynceus.web.shelf import Shelf

CONNECTIONS = THREADS + 8
"""Connections to PostgreSQL that are kept open: one per writing thread, some for readers."""


def create_app(
    storage_url: str,
    *,
    access: Access | None = None,
    folder: str | Path = ".",
    most_bytes: int = MOST_BYTES,
) -> FastAPI:
    """An ASGI application over a storage. By default it only reads, and answers as localhost.

    `folder` is where job files that come through the API are taken to stand; `most_bytes` is the largest body of a request.
    """
    access = Access() if access is None else access
    storage = Storage(storage_url, connections=CONNECTIONS)
    shelf, couriers = Shelf(storage), Couriers()
    clerks = Clerks(shelf, noticed=couriers.look)
    house = House(storage, access, shelf, clerks, Watch(storage), Latest(), Path(folder).resolve())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await house.watch.close()
        house.clerks.close()
        couriers.close()
        storage.close()

    app = FastAPI(title="Lynceus", docs_url=None, redoc_url=None, openapi_url=f"{API}/openapi.json", lifespan=lifespan)
    app.state.house = house
    faults.install(app, routes_pages.lost_page)
    for routes in (routes_read.routes, routes_write.routes, routes_pages.api):
        app.include_router(routes, prefix=API)
    app.include_router(routes_pages.pages)
    app.mount("/static", routes_pages.Assets(directory=routes_pages.STATIC), name="static")
    known: list[dict[str, Any]] = []

    def described() -> dict[str, Any]:
        if not known:
            known.append(openapi.document(app, house.version))
        return known[0]

    app.openapi = described  # type: ignore[method-assign]
    attempts = Attempts()
    app.state.guard = Guard(app.router, access, attempts)
    app.add_middleware(Guard, access=access, attempts=attempts, most_bytes=most_bytes)
    return app
