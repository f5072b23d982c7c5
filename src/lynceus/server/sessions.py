"""Sessions that were signed out: their cookies are signed and not yet expired, but no longer accepted."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from lynceus.server.access import session_id
from lynceus.storage.sql.storage import Storage

BELIEVED_S = 2.0
"""Seconds for which a session is accepted after the storage was asked: so long may a sign-out on another server go unnoticed."""
MOST_SESSIONS = 10_000


@dataclass
class SignedOut:
    """Sessions that have ended early. The storage keeps them, so that they stay ended after a restart and on other servers."""

    storage: Storage
    clock: Callable[[], float] = time.monotonic
    _ended: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _asked: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """When the storage last said that a session goes on."""

    async def end(self, cookie: str) -> None:
        """Accept this session no longer."""
        name = session_id(cookie)
        _remember(self._ended, name, self.clock())
        await run_in_threadpool(self.storage.set_setting, _setting(name), "ended")

    async def has(self, cookie: str) -> bool:
        """Whether this session, whose signature is right, was signed out."""
        name, now = session_id(cookie), self.clock()
        if name in self._ended:
            return True
        if now - self._asked.get(name, -BELIEVED_S) < BELIEVED_S:
            return False
        if await run_in_threadpool(self.storage.setting, _setting(name)) is not None:
            _remember(self._ended, name, now)
            return True
        _remember(self._asked, name, now)
        return False


def _setting(name: str) -> str:
    return f"session {name}"


def _remember(known: OrderedDict[str, float], name: str, now: float) -> None:
    known[name] = now
    known.move_to_end(name)
    while len(known) > MOST_SESSIONS:
        known.popitem(last=False)
