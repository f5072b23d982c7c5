"""The application: one storage, the API, the pages."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from lynceus.errors import MissingExtraError
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import TokenStore

try:
    from fastapi import FastAPI
except ImportError:
    raise MissingExtraError("The dashboard and its API", "web") from None

from lynceus.server import errors, openapi
from lynceus.server.access import Access
from lynceus.server.context import Context
from lynceus.server.document_cache import DocumentCache
from lynceus.server.events import Events
from lynceus.server.guard import MAX_BODY_BYTES, Guard
from lynceus.server.job_metrics import JobMetrics
from lynceus.server.login_limits import LoginLimits
from lynceus.server.metrics import StudyMetrics
from lynceus.server.named_tokens import NamedTokens
from lynceus.server.notifiers import Notifiers
from lynceus.server.proxies import TrustedProxies
from lynceus.server.route_roles import API
from lynceus.server.routes import events as event_routes
from lynceus.server.routes import jobs, manage, metrics, pages, read, session, teams, write
from lynceus.server.sessions import SignedOut
from lynceus.server.study_cache import StudyCache
from lynceus.server.writer import THREADS, Writers

CONNECTIONS = THREADS + 8
"""Connections to PostgreSQL that are kept open: one per writer thread, some for readers."""


def create_app(
    storage_url: str,
    *,
    access: Access | None = None,
    folder: str | Path = ".",
    proxies: TrustedProxies | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> FastAPI:
    """An ASGI application over a storage. By default it is read-only and answers to localhost.

    `folder` is the folder of job files that are sent to the API; `proxies` are believed when they name the client of a request;
    `max_body_bytes` is the largest body of a request.
    """
    access = Access() if access is None else access
    storage = Storage(storage_url, connections=CONNECTIONS)
    notifiers, tokens = Notifiers(), NamedTokens(TokenStore(storage))
    context = _context(storage, access, notifiers, Path(folder).resolve())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await context.events.close()
        context.writers.close()
        notifiers.close()
        tokens.close()
        storage.close()

    app = _application(context, lifespan)
    guard = functools.partial(
        Guard,
        access=access,
        signed_out=SignedOut(storage),
        tokens=tokens,
        proxies=proxies or TrustedProxies(),
        limits=LoginLimits(),
        max_body_bytes=max_body_bytes,
    )
    app.state.guard = guard(app.router)
    app.add_middleware(guard)
    return app


def _context(storage: Storage, access: Access, notifiers: Notifiers, folder: Path) -> Context:
    studies = StudyCache(storage)
    return Context(
        storage,
        access,
        studies,
        DocumentCache(),
        Writers(studies, written=notifiers.notify),
        Events(storage),
        StudyMetrics(storage),
        JobMetrics(storage),
        folder=folder,
    )


def _application(context: Context, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    """The routes, the pages and the errors."""
    app = FastAPI(
        title="Lynceus",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        redirect_slashes=False,  # a redirect would repeat whatever port the header Host names
        lifespan=lifespan,
    )
    app.state.context = context
    errors.install(app, pages.not_found_page)
    for module in (read, write, manage, jobs, teams, event_routes, session):
        app.include_router(module.routes, prefix=API)
    app.include_router(metrics.routes)
    app.include_router(pages.routes)
    app.mount("/static", pages.StaticAssets(directory=pages.STATIC), name="static")
    app.openapi = functools.cache(lambda: openapi.document(app, context.version))  # type: ignore[method-assign]
    return app
