"""Server-sent events: a small message for every change of a study; the page then asks for what is new.

One query of the storage serves all listeners of a server, and none is made while there are no listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from lynceus.errors import InfrastructureError
from lynceus.server.errors import HttpError
from lynceus.storage.sql.rows import Cursor
from lynceus.storage.sql.storage import Storage

POLL_S = 0.25
"""Seconds between two queries of the storage."""
KEEPALIVE_S = 15.0
"""After so many seconds without a message a comment is sent, so that no proxy closes the connection."""
MAX_LISTENERS = 500


@dataclass
class Events:
    """Polls a storage while there are listeners."""

    storage: Storage
    cursors: dict[str, Cursor] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _check_now: asyncio.Event = field(default_factory=asyncio.Event)
    _polling: asyncio.Task[None] | None = None
    _listeners: int = 0
    _closed: bool = False
    _version: int = 0
    """Grows with every change."""

    def check_capacity(self) -> None:
        """Refuse another listener when there are too many."""
        if self._listeners >= MAX_LISTENERS:
            raise HttpError(
                503, f"{MAX_LISTENERS} listeners are connected already; try again later.", {"Retry-After": "10"}
            )

    async def messages(self, study: str | None = None) -> AsyncIterator[str]:
        """Messages about one study, or about all: one for each study at once, then one for each change."""
        self._listeners += 1
        try:
            yield "retry: 2000\n\n"
            await self._poll()
            known: dict[str, Cursor] = {}
            sent = time.monotonic()
            while not self._closed:
                version = self._version
                wanted = {name: one for name, one in self.cursors.items() if study is None or name == study}
                gone = known.keys() - wanted.keys()
                new = [one for name, one in wanted.items() if known.get(name) != one]
                known = wanted
                for one in new:
                    yield message(one)
                for name in gone:
                    yield f"event: gone\ndata: {json.dumps({'study': name})}\n\n"
                now = time.monotonic()
                if new or gone:
                    sent = now
                elif now - sent >= KEEPALIVE_S:
                    sent = now
                    yield ": keep-alive\n\n"
                await self._wait(version)
        finally:
            self._listeners -= 1

    def check_now(self) -> None:
        """This server has changed something: query the storage at once."""
        self._check_now.set()

    async def close(self) -> None:
        """End the streams of all listeners."""
        self._closed = True
        await self._notify()
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling

    async def _wait(self, version: int) -> None:
        """Return when there is a newer version, or after a while."""
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll_repeatedly())
        async with self._changed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait_for(lambda: self._version != version), KEEPALIVE_S)

    async def _poll_repeatedly(self) -> None:
        while self._listeners and not self._closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._check_now.wait(), POLL_S)
            self._check_now.clear()
            if await self._poll():
                await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._version += 1
            self._changed.notify_all()

    async def _poll(self) -> bool:
        """Read the cursors of all studies; True when one has changed. A storage that cannot be reached counts as unchanged."""
        try:
            found = await run_in_threadpool(self.storage.cursors)
        except InfrastructureError:
            return False
        new = {one.study: one for one in found}
        changed = new != self.cursors
        self.cursors = new
        return changed


def message(cursor: Cursor) -> str:
    """A study has changed: its name, the number of its last change, and its settled trials.

    >>> print(message(Cursor("nightly", "ab12", 7, 3)), end="")
    id: 7
    event: changed
    data: {"study": "nightly", "identity": "ab12", "sequence": 7, "settled": 3}
    <BLANKLINE>
    """
    data = {
        "study": cursor.study,
        "identity": cursor.identity,
        "sequence": cursor.sequence,
        "settled": cursor.settled,
    }
    return f"id: {cursor.sequence}\nevent: changed\ndata: {json.dumps(data)}\n\n"
