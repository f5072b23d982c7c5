"""A limit on the processor time of a piece of code, also of a regular expression that would not end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class OutOfTimeError(Exception):
    """The limit was reached."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in the enclosed code after `seconds` of processor time; only in the main thread.

    Python looks for signals while it matches an expression. Processor time, because a busy machine must not make the difference.
    """
    armed = True

    def ring(number: int, frame: object) -> None:
        if armed:
            raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before or signal.SIG_DFL)
