"""Documents that take a while, kept until the study has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Latest(Generic[T]):
    """The newest value by key. It is computed by one at a time; whoever waits meanwhile takes it, if it is new enough for him.

    >>> latest: Latest[str] = Latest()
    >>> latest.get("a", 3, lambda: "of 3"), latest.get("a", 2, lambda: "of 2"), latest.get("a", 4, lambda: "of 4")
    ('of 3', 'of 3', 'of 4')
    """

    most: int = 256
    """Keys that are remembered; the one that was asked for longest ago goes first."""
    _slots: OrderedDict[Hashable, _Slot[T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, version: int, compute: Callable[[], T]) -> T:
        """The value of a key for this version or a newer one; an error is not kept."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self.most:
                self._slots.popitem(last=False)
        with slot.lock:
            if slot.value is None or slot.version < version:
                slot.value, slot.version = compute(), version
            return slot.value


@dataclass
class _Slot(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    version: int = -1
