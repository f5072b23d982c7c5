"""Server-sent events: a small message for every change of a study; the page then asks for what is new.

One query of the storage serves all listeners of a server, and none is made while there are no listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
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
MAX_OF_ONE_ADDRESS = 100
"""Listeners of one address: nobody can take the places of all others."""


@dataclass
class Events:
    """Polls a storage while there are listeners."""

    storage: Storage
    cursors: dict[str, Cursor] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the next change, and then replaced: unlike a condition, it needs no lock that a listener could leave with."""
    _check_now: asyncio.Event = field(default_factory=asyncio.Event)
    _polling: asyncio.Task[None] | None = None
    max_listeners: int = MAX_LISTENERS
    _listeners: Counter[str] = field(default_factory=Counter)
    """By address."""
    _closed: bool = False

    def check_capacity(self, address: str) -> None:
        """Refuse another listener when there are too many."""
        for count, most, where in (
            (self._listeners.total(), self.max_listeners, ""),
            (self._listeners[address], MAX_OF_ONE_ADDRESS, " from your address"),
        ):
            if count >= most:
                sentence = f"{most} listeners are connected already{where}; try again later."
                raise HttpError(503, sentence, {"Retry-After": "10"})

    async def messages(self, address: str, study: str | None = None) -> AsyncIterator[str]:
        """Messages about one study, or about all: one for each study at once, then one for each change."""
        self._listeners[address] += 1
        try:
            yield "retry: 2000\n\n"
            await self._poll()
            known: dict[str, Cursor] = {}
            sent = time.monotonic()
            while not self._closed:
                changed = self._changed
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
                await self._wait(changed)
        finally:
            self._listeners[address] -= 1
            self._listeners += Counter()  # without zeros

    def check_now(self) -> None:
        """This server has changed something: query the storage at once."""
        self._check_now.set()

    async def close(self) -> None:
        """End the streams of all listeners."""
        self._closed = True
        self._notify()
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling

    async def _wait(self, changed: asyncio.Event) -> None:
        """Return when something has changed, or after a while."""
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll_repeatedly())
        # Not `wait_for`: when a change and the end of a listener coincide, it forgets the latter.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KEEPALIVE_S):
                await changed.wait()

    async def _poll_repeatedly(self) -> None:
        while self._listeners.total() and not self._closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._check_now.wait()
            self._check_now.clear()
            if await self._poll():
                self._notify()

    def _notify(self) -> None:
        before, self._changed = self._changed, asyncio.Event()
        before.set()

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
