"""Ctrl-C: what it requests, and that it always ends the command, whatever hangs."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lynceus.cli import exit_codes
from lynceus.executors.interface import Outage
from lynceus.trial.record import RequestedState

_END_S = 4.0
"""So long after Ctrl-C the command ends, if it wants to leave, or hangs."""
_STALL_S = 5.0
"""A command that has been blocked for so long says so."""
_LOOK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What Ctrl-C requests: the first one starts no more trials, the second one ends open trials, the third one leaves them.

    During an outage nothing can be ended, and the first one leaves.
    """

    def __init__(self, study: str) -> None:
        self._study = study
        self._count = 0
        self._outage: Outage | None = None
        self._leaves = False
        self.polled_s = time.monotonic()
        """When the loop last asked what the user wants."""

    def __call__(self) -> RequestedState:
        """What the user wants by now."""
        self.polled_s = time.monotonic()
        return (RequestedState.RUN, RequestedState.STOP, RequestedState.KILL)[min(self._count, 2)]

    def leaves(self) -> bool:
        """Whether the user wants the command to end at once; open trials go on."""
        self.polled_s = time.monotonic()
        return self._leaves

    @property
    def leaving(self) -> bool:
        """The same, for onlookers."""
        return self._leaves

    def outage(self, found: Outage | None) -> None:
        """Something does not answer; None: everything does."""
        self._outage = found

    @property
    def any(self) -> bool:
        """Whether there was any."""
        return self._count > 0

    @property
    def note(self) -> str:
        """One line for the user."""
        if self._leaves:
            return f"leaving; open trials go on. Continue with: lynceus resume {self._study}"
        if self._outage is not None:
            return f"Ctrl-C leaves now; open trials go on, and 'lynceus resume {self._study}' takes them up"
        return (
            "Ctrl-C stops after the open trials; nothing is lost",
            "stopping: open trials finish first; Ctrl-C again ends them now",
            "ending open trials …; Ctrl-C again leaves them",
        )[min(self._count, 2)]

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Count a signal."""
        self._count += 1
        first = not self._leaves
        self._leaves = self._leaves or self._count > 2 or self._outage is not None
        if first:
            _print(f"\nlynceus: {self.note}\n")


@contextmanager
def interrupts(study: str, stalled: Callable[[float], None] | None = None) -> Iterator[Interrupts]:
    """Count Ctrl-C, and SIGTERM like it, instead of being ended by it.

    A thread watches over it: a command that hangs or wants to leave ends within seconds of a signal. `stalled` is called from that
    thread, with the moment since when the command has been blocked (seconds since the epoch).
    """
    requested = Interrupts(study)
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = {number: signal.signal(number, requested.handle) for number in _SIGNALS}
    # Python runs a handler only between two of its instructions; what is written here arrives even while a library call blocks.
    former = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watch = _Watch(requested, study, read, stalled)
    watch.start()
    try:
        yield requested
    finally:
        signal.set_wakeup_fd(former)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(write)
        watch.join()
        os.close(read)


class _Watch(threading.Thread):
    """Ends a command that does not end by itself."""

    def __init__(
        self, requested: Interrupts, study: str, signals: int, stalled: Callable[[float], None] | None
    ) -> None:
        super().__init__(name="interrupts", daemon=True)
        self._requested, self._study, self._signals, self._stalled = requested, study, signals, stalled
        self._main = threading.main_thread().native_id
        self._signalled_s: float | None = None
        """When the first signal came to which the loop has not reacted."""
        self._polled_s = 0.0
        self._looks = self._computing = 0
        """Looks at the main thread since the loop last asked for requests, and how often it was computing."""
        self._said = False

    def run(self) -> None:
        """Look again and again, until the pipe of signals is closed."""
        while True:
            if select.select([self._signals], [], [], _LOOK_S)[0]:
                if not (data := os.read(self._signals, 64)):
                    return
                if self._signalled_s is None and any(number in _SIGNALS for number in data):
                    self._signalled_s = time.monotonic()
            self._look()
            silent_s = time.monotonic() - self._polled_s
            if silent_s >= _STALL_S and self._blocked and not self._said:
                self._said = True
                if self._stalled is not None:
                    self._stalled(time.time() - silent_s)
            if self._must_end():
                shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # the cursor, which a live board hides
                why = "" if self._requested.leaving else ", because something does not answer"
                resume = f"lynceus resume {self._study}"
                _print(f"{shown}\nlynceus: left{why}; open trials go on. Continue with: {resume}\n")
                os._exit(exit_codes.INTERRUPTED)

    def _look(self) -> None:
        polled_s = self._requested.polled_s
        if polled_s != self._polled_s:
            self._polled_s, self._looks, self._computing, self._said = polled_s, 0, 0, False
        self._looks += 1
        self._computing += self._computes()
        if self._signalled_s is not None and polled_s > self._signalled_s and not self._requested.leaving:
            self._signalled_s = None

    @property
    def _blocked(self) -> bool:
        """Whether the main thread mostly waits, so that it is no long computation which keeps the loop."""
        return 2 * self._computing < self._looks

    def _must_end(self) -> bool:
        waited = self._signalled_s is not None and time.monotonic() - self._signalled_s >= _END_S
        return waited and (self._requested.leaving or self._blocked)

    def _computes(self) -> bool:
        """Whether the main thread runs now; false where the system does not tell."""
        with contextlib.suppress(OSError, IndexError), open(f"/proc/self/task/{self._main}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"R"
        return False


def _print(text: str) -> None:
    """To standard error, from a signal handler, too: no lock, no buffer."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))
