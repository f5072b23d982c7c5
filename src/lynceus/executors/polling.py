"""How often an executor asks a cluster: regularly while it answers, less often while it does not, and never for each trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

_FIRST_S = 1.0
_SLOWEST_PROBE_S = 8.0
"""How long to leave a service alone at most that does not answer."""
_SLOWEST_RETRY_S = 30.0
"""The same for a service that answers, but refuses."""
_NEVER = -float("inf")

Answer = TypeVar("Answer")


class PolledAnswer(Generic[Answer]):
    """The last answer of a service about all trials."""

    def __init__(
        self, ask: Callable[[], Answer], every_s: float, no_answer: tuple[type[Exception], ...] | type[Exception]
    ) -> None:
        """`no_answer` are the errors of a service that does not answer."""
        self._ask, self._every_s, self._no_answer = ask, every_s, no_answer
        self._answer: Answer | None = None
        self._asked_s, self._pause_s = _NEVER, 0.0

    def get(self, *, at_once: bool = False) -> Answer | None:
        """The answer, asked for again if it is old; None if the service does not answer."""
        if at_once or time.monotonic() - self._asked_s >= self._every_s:
            try:
                self._answer, self._pause_s = self._ask(), 0.0
                self._asked_s = time.monotonic()
            except self._no_answer:
                self._answer, self._pause_s = None, min(2 * self._pause_s + _FIRST_S, _SLOWEST_PROBE_S)
                self._asked_s = time.monotonic() + self._pause_s
        return self._answer

    def expire(self) -> None:
        """Ask again at the next `get`: something was changed."""
        self._asked_s = _NEVER

    @property
    def is_answering(self) -> bool:
        """Whether the service answered the last time."""
        return self._pause_s == 0.0


class RetryPauses:
    """When to try again what has failed, by ticket: each pause is twice as long as the one before, up to a limit."""

    def __init__(self) -> None:
        self._until_s: dict[str, tuple[float, float]] = {}
        """Ticket → when to try again, and the length of this pause."""

    def failed(self, ticket: str, *, answered: bool) -> None:
        """Wait, for longer where the service `answered` that it refuses than where it did not answer."""
        _, last_s = self._until_s.get(ticket, (0.0, _FIRST_S / 2))
        wait_s = min(2 * last_s, _SLOWEST_RETRY_S if answered else _SLOWEST_PROBE_S)
        self._until_s[ticket] = (time.monotonic() + wait_s, wait_s)

    def is_due(self, ticket: str) -> bool:
        """Whether it is time to try; at once if nothing has failed."""
        return ticket not in self._until_s or time.monotonic() >= self._until_s[ticket][0]

    def forget(self, ticket: str) -> None:
        """It has succeeded, or is over."""
        self._until_s.pop(ticket, None)
