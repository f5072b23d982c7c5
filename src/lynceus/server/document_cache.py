"""A cache for documents that take a while to compute, valid until the study changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class DocumentCache(Generic[T]):
    """The newest value by key. One thread computes a value; threads that wait for it share it, if it is new enough for them.

    >>> cache: DocumentCache[str] = DocumentCache()
    >>> cache.get("a", 3, lambda: "of 3"), cache.get("a", 2, lambda: "of 2"), cache.get("a", 4, lambda: "of 4")
    ('of 3', 'of 3', 'of 4')
    """

    max_keys: int = 256
    """The least recently used key is dropped first."""
    _slots: OrderedDict[Hashable, _Slot[T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, version: int, compute: Callable[[], T]) -> T:
        """The value of a key for this version or a newer one; errors are not cached."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self.max_keys:
                self._slots.popitem(last=False)
        with slot.lock:
            if slot.version is None or slot.version < version:
                slot.value, slot.version = compute(), version
            return slot.value  # type: ignore[return-value]


@dataclass
class _Slot(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    version: int | None = None
