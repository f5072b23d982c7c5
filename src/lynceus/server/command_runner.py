"""Run commands for a request: once per idempotency key, with timing headers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from lynceus.server.context import context_of, visitor_of
from lynceus.server.schemas import Body, IdempotencyKey, StudyName
from lynceus.server.writer import Command
from lynceus.storage.sql.idempotency import Once, request_digest


@dataclass(frozen=True)
class CommandRunner:
    """A request that changes a study."""

    request: Request
    response: Response
    study: str
    key: str | None

    async def __call__(self, command: Command, body: Body | None = None) -> dict[str, Any]:
        """Run a command; a repeated request gets the first answer."""
        request, context = self.request, context_of(self.request)
        once = None
        if self.key is not None:
            fields = None if body is None else body.model_dump(mode="json")
            once = Once(self.key, request_digest(request.method, request.url.path, fields))
        worker = visitor_of(request).author
        completed = await asyncio.wrap_future(context.writers.submit(self.study, command, worker=worker, once=once))
        context.events.check_now()
        if completed.decided_s:
            context.metrics.decided(self.study, completed.decided_s)
        timing = f"decide;dur={completed.decided_s * 1e3:.2f}, total;dur={completed.waited_s * 1e3:.2f}"
        self.response.headers["Server-Timing"] = timing
        if completed.repeated:
            self.response.headers["Idempotency-Replayed"] = "true"
        return completed.answer


def _runner(
    request: Request, response: Response, name: StudyName, idempotency_key: IdempotencyKey = None
) -> CommandRunner:
    return CommandRunner(request, response, name, idempotency_key)


Run = Annotated[CommandRunner, Depends(_runner)]
