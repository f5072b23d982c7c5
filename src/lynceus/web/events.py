"""Server-sent events: a small message whenever a study has changed; whoever hears it asks for what is new.

One look at the storage serves all listeners of a server, and there is none while nobody listens.
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
from lynceus.ledger.sql import Cursor, Storage
from lynceus.web.faults import FaultError

LOOK_S = 0.25
"""Seconds between two looks at the storage."""
QUIET_S = 15.0
"""After so long without news a comment is sent, so that nobody between us and the browser closes the connection."""
MOST_LISTENERS = 500


@dataclass
class Watch:
    """Looks at a storage while somebody listens."""

    storage: Storage
    cursors: dict[str, Cursor] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: asyncio.Task[None] | None = None
    _listeners: int = 0
    _closed: bool = False
    _version: int = 0
    """Grows with every change that was seen."""

    def check_room(self) -> None:
        """Refuse another listener when there are too many."""
        if self._listeners >= MOST_LISTENERS:
            raise FaultError(
                503, f"{MOST_LISTENERS} listeners are connected already; try later.", {"Retry-After": "10"}
            )

    async def messages(self, study: str | None = None) -> AsyncIterator[str]:
        """Messages about one study, or about all: one for each at once, then one for each change."""
        self._listeners += 1
        try:
            yield "retry: 2000\n\n"
            await self._look()
            known: dict[str, Cursor] = {}
            spoke = time.monotonic()
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
                    spoke = now
                elif now - spoke >= QUIET_S:
                    spoke = now
                    yield ": quiet\n\n"
                await self._change(version)
        finally:
            self._listeners -= 1

    def hurry(self) -> None:
        """Something was changed by this server itself: look at once."""
        self._hurry.set()

    async def close(self) -> None:
        """Let every listener go."""
        self._closed = True
        await self._announce()
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    async def _change(self, seen: int) -> None:
        """Until something is newer than what was seen, or a while has passed."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking())
        async with self._news:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait_for(lambda: self._version != seen), QUIET_S)

    async def _keep_looking(self) -> None:
        while self._listeners and not self._closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), LOOK_S)
            self._hurry.clear()
            if await self._look():
                await self._announce()

    async def _announce(self) -> None:
        async with self._news:
            self._version += 1
            self._news.notify_all()

    async def _look(self) -> bool:
        """Read how far studies have come; true when something is new. A storage that is away for a while is no news."""
        try:
            found = await run_in_threadpool(self.storage.cursors)
        except InfrastructureError:
            return False
        new = {one.study: one for one in found}
        changed = new != self.cursors
        self.cursors = new
        return changed


def message(cursor: Cursor) -> str:
    """A study has changed: name, and how far it has come.

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
