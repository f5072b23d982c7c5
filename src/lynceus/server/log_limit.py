"""A limit on the log: a client that repeats a mistake a thousand times a second must not fill the disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PER_MINUTE = 5
"""Lines of one kind per minute."""
_LOGGERS = ("lynceus.server", "uvicorn.error", "asyncio")


@dataclass(eq=False)
class LogLimit(logging.Filter):
    """Passes a few records of each kind per minute; records of one kind have the same text before it is formatted.

    >>> limit = LogLimit(clock=lambda: 0.0)
    >>> records = [logging.makeLogRecord({"msg": "no %s"}) for _ in range(7)]
    >>> [limit.filter(record) for record in records], records[4].msg
    ([True, True, True, True, True, False, False], 'no %s (more of these are left out for a minute)')
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By kind: the start of its minute, and the records since then. Kinds are texts in programs, so there are few."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        now, kind = self.clock(), str(record.msg)
        began, count = self._seen.get(kind, (now, 0))
        if now - began >= 60.0:
            began, count = now, 0
        self._seen[kind] = (began, count + 1)
        if count + 1 == PER_MINUTE:
            record.msg = f"{kind} (more of these are left out for a minute)"
        return count < PER_MINUTE


def limit_logs() -> None:
    """Limit what the server, uvicorn and asyncio write."""
    limit = LogLimit()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(limit)
