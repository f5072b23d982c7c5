"""Forks: what a child must make new (locks that a lost thread may hold, connections that its parent goes on using), and when to fork.

A child has only the thread that forked. What another thread did at that moment is never finished there, so a fork waits until no thread is
inside a journal: SQLite has locks of its own, and a child that inherits one of them waits for ever.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_PATIENCE_S = 10.0
"""How long a fork waits for one journal."""


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...


_Owner = TypeVar("_Owner")
_RENEW: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()
_LOCKS: weakref.WeakKeyDictionary[Any, Callable[[Any], _Lock]] = weakref.WeakKeyDictionary()
_held: list[_Lock] = []


def renew_after_fork(
    owner: _Owner, renew: Callable[[_Owner], None], lock: Callable[[_Owner], _Lock] | None = None
) -> None:
    """Call `renew(owner)` in every child that is forked while `owner` is in use; fork only while `lock(owner)` is free."""
    _RENEW[owner] = renew
    if lock is not None:
        _LOCKS[owner] = lock


def _hold() -> None:
    for owner, lock in list(_LOCKS.items()):
        one = lock(owner)
        if one.acquire(timeout=_PATIENCE_S):
            _held.append(one)


def _release() -> None:
    while _held:
        _held.pop().release()


def _renew() -> None:
    _held.clear()
    for owner, renew in list(_RENEW.items()):
        renew(owner)


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
