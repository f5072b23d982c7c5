"""What an executor's controller fails to answer, from the first failure until it answers again."""

from __future__ import annotations

import time

from lynceus.executors.interface import Outage
from lynceus.trial.text import clean_line

_LONGEST = 200


class OutageLog:
    """The open problems of one executor, by what was asked.

    >>> log = OutageLog()
    >>> log.failed("squeue", "squeue has not answered for 3 s")
    >>> log.current().detail
    'squeue has not answered for 3 s'
    >>> log.answered("squeue")
    >>> log.current() is None
    True
    """

    def __init__(self) -> None:
        self._open: dict[str, Outage] = {}

    def failed(self, asked: str, detail: str, *, for_s: float = 0.0) -> None:
        """A question failed, or has had no answer for this many seconds. The latest words count, and the earliest time."""
        since = time.time() - for_s
        if asked in self._open:
            since = min(since, self._open[asked].since_s)
        self._open[asked] = Outage(clean_line(detail, _LONGEST), since)

    def answered(self, *asked: str) -> None:
        """These questions were answered, or nobody asks them any more."""
        for one in asked:
            self._open.pop(one, None)

    def current(self) -> Outage | None:
        """The problem that has lasted longest; None if there is none."""
        return min(list(self._open.values()), key=lambda one: one.since_s, default=None)
