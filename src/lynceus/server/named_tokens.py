"""Named tokens as a server knows them: read from the storage every few seconds, so that requests do not wait for it.

A secret is compared with every token, in the same time whichever it is. Wrong secrets make the server read the storage at most ten times
per second, however many arrive.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from lynceus.errors import LynceusError
from lynceus.server.access import SESSION_S
from lynceus.storage.access_token import PREFIX, Role, StoredToken, digest_of
from lynceus.storage.sql.tokens import TokenStore

BELIEVED_S = 2.0
"""Seconds for which tokens and sessions are believed after the storage was asked: so long may a revocation elsewhere go unnoticed."""
_MISSED_S = 0.1
"""The same for a secret that is not known: it may belong to a new token."""
_MARKED_S = 60.0
"""How exactly the last use of a token is stored."""
_MOST_SESSIONS = 10_000
_log = logging.getLogger("lynceus.server")


@dataclass(frozen=True)
class _Known:
    """What the storage said, and when."""

    tokens: tuple[StoredToken, ...]
    storage_s: float
    """By the clock of the storage, seconds since the epoch."""
    read_s: float
    """By our own clock."""


@dataclass
class NamedTokens:
    """The tokens of a storage."""

    store: TokenStore
    clock: Callable[[], float] = time.monotonic
    _known: _Known | None = None
    _sessions: OrderedDict[str, tuple[StoredToken | None, float]] = field(default_factory=OrderedDict, repr=False)
    """By the digest of their cookie, with the time at which the storage was asked."""
    _forgotten: int = 0
    """How often what was known was dropped: an answer of the storage to an earlier question is not remembered."""
    _marked: dict[int, float] = field(default_factory=dict)
    _marker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "token-use"), repr=False)
    """Writes when tokens were used, while requests go on."""

    def close(self) -> None:
        """Write nothing more."""
        self._marker.shutdown(cancel_futures=True)

    def forget(self) -> None:
        """Ask the storage again at the next request: a token was added or revoked here."""
        self._forgotten += 1
        self._known = None
        self._sessions.clear()

    async def writers(self) -> bool:
        """Whether any token allows changes."""
        known = await self._read(BELIEVED_S)
        return any(one.token.role.allows(Role.RUNNER) for one in known.tokens)

    async def find(self, secret: str) -> StoredToken | None:
        """The token with this secret, expired or not."""
        if not secret.startswith(PREFIX):
            return None
        digest = digest_of(secret)
        for believed_s in (BELIEVED_S, _MISSED_S):
            known, found = await self._read(believed_s), None
            for one in known.tokens:
                if one.has_secret(digest):
                    found = one
            if found is not None:
                return found
        return None

    async def expired(self, one: StoredToken) -> bool:
        """Whether the time of a token is over, by the clock of the storage."""
        known = await self._read(BELIEVED_S)
        return one.token.expired(known.storage_s + self.clock() - known.read_s)

    def mark(self, one: StoredToken) -> None:
        """Remember that a token was used now."""
        now = self.clock()
        if now - self._marked.get(one.id, -_MARKED_S) >= _MARKED_S:
            self._marked[one.id] = now
            self._marker.submit(self._mark_used, one)

    async def begin_session(self, one: StoredToken) -> str:
        """The cookie of a browser that signs in."""
        return await run_in_threadpool(self.store.begin_session, one, SESSION_S)

    async def of_session(self, cookie: str) -> StoredToken | None:
        """The token with which a browser has signed in; None when it has expired, or the session has ended."""
        digest, now = digest_of(cookie), self.clock()
        found, asked_s = self._sessions.get(digest, (None, -BELIEVED_S))
        if now - asked_s >= BELIEVED_S:
            asked = self._forgotten
            found = await run_in_threadpool(self.store.of_session, cookie)
            if asked == self._forgotten:
                self._remember(digest, found, now)
        return None if found is None or await self.expired(found) else found

    async def end_session(self, cookie: str) -> None:
        """Sign a browser out."""
        await run_in_threadpool(self.store.end_session, cookie)
        self._forgotten += 1
        self._sessions.pop(digest_of(cookie), None)

    def _remember(self, digest: str, found: StoredToken | None, now: float) -> None:
        self._sessions[digest] = (found, now)
        self._sessions.move_to_end(digest)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    async def _read(self, believed_s: float) -> _Known:
        now = self.clock()
        if self._known is None or now - self._known.read_s >= believed_s:
            asked = self._forgotten
            known = await run_in_threadpool(self._ask, now)
            if asked == self._forgotten:
                self._known = known
            return known
        return self._known

    def _ask(self, now: float) -> _Known:
        return _Known(self.store.stored(), self.store.storage.clock.now(), now)

    def _mark_used(self, one: StoredToken) -> None:
        try:
            self.store.mark_used(one.id)
        except LynceusError as error:
            _log.warning("The last use of the token %s could not be stored: %s", one.token.name, error)
