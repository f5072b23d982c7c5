"""What all routes of one server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from lynceus.analysis.documents.json import Document
from lynceus.policy.shared_budgets import limiting_budget
from lynceus.server.access import Access
from lynceus.server.document_cache import DocumentCache
from lynceus.server.events import Events
from lynceus.server.guard import Guard, Visitor
from lynceus.server.job_metrics import JobMetrics
from lynceus.server.metrics import StudyMetrics
from lynceus.server.study_cache import Snapshot, StudyCache
from lynceus.server.writer import Writers
from lynceus.storage.sql.storage import Storage
from lynceus.version import __version__

SLOW_THREADS = 4
"""Threads that compute documents which take seconds."""


@dataclass(frozen=True)
class Context:
    """One storage and everything that serves it."""

    storage: Storage
    access: Access
    studies: StudyCache
    documents: DocumentCache[Document]
    writers: Writers
    events: Events
    metrics: StudyMetrics
    job_metrics: JobMetrics
    folder: Path
    """The folder of job files that are sent to the API."""
    version: str = __version__
    slow: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(SLOW_THREADS))
    """Limits the threads that wait for models, so that other requests always find a thread."""

    def cached(self, one: Snapshot, kind: str, compute: Callable[[], Document]) -> Document:
        """A document about a study as it is now, computed once per change of the study, or of a shared budget that limits it."""
        limit = limiting_budget(one.study.record, one.study.budget_usd)
        return self.documents.get((one.record.identity, kind, limit), one.record.sequence, compute)


def context_of(request: Request) -> Context:
    """The context of the server that got a request."""
    context: Context = request.app.state.context
    return context


def visitor_of(request: Request) -> Visitor:
    """Role and address of the sender of a request."""
    visitor: Visitor = request.state.visitor
    return visitor


def guard_of(request: Request) -> Guard:
    """The guard of the server that got a request."""
    guard: Guard = request.app.state.guard
    return guard


def snapshot(request: Request, name: str) -> Snapshot:
    """A study as it is now."""
    return context_of(request).studies.snapshot(name)


async def run_slow(request: Request, compute: Callable[[], Document]) -> Document:
    """Compute something that may take seconds in a thread of its own."""
    return await to_thread.run_sync(compute, limiter=context_of(request).slow)
