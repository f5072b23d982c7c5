"""Documents that models had to be asked for, kept until the study has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Memo(Generic[T]):
    """The last values by key. Several who want the same value at once wait for one of them to compute it.

    >>> memo: Memo[int] = Memo(most=2)
    >>> memo.get("a", lambda: 1), memo.get("a", lambda: 2)
    (1, 1)
    """

    most: int = 128
    _slots: OrderedDict[Hashable, _Slot[T]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of a key, computed at most once at a time; an error is not kept."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self.most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.values:
                slot.values.append(compute())
            return slot.values[0]


@dataclass
class _Slot(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: list[T] = field(default_factory=list)
