"""The server's process with everything that it starts, and the end of its output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time

from lynceus.executors.serving.errors import FAILED, PASSED_ON, MeasurementError
from lynceus.executors.supervisor import process_tree

_CHUNK_BYTES = 65536
_TAIL_BYTES = 4096
_POLL_S = 0.02
_LAST_OUTPUT_S = 1.0


class Program:
    """A process whose output, both streams in one, is passed on and whose last lines are remembered."""

    def __init__(self, what: str, argv: list[str], environment: dict[str, str], to: int) -> None:
        self._what, self._to, self._tail = what, to, b""
        try:
            # A session of its own, because some servers signal their whole process group when they end.
            self._process = subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise MeasurementError(f"{what} cannot be started: {argv[0]!r}: {reason}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while True:
            data = os.read(descriptor, _CHUNK_BYTES)
            if not data:
                return
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            self.passed_on(data)

    def passed_on(self, data: bytes) -> None:
        """Write output where it belongs; a reader that is gone must not end the program."""
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._to, data) :]

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal that killed it."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal to the process and what it has started."""
        found = process_tree.descendants(self._process.pid) | {self._process.pid}
        process_tree.signal_all(found, number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it has ended."""
        until = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < until:
            time.sleep(_POLL_S)
        return self.exit_code is not None

    def finish_reading(self) -> None:
        """Read what is left of the output once the process has ended; something that it left may hold the pipe open."""
        self._reader.join(_LAST_OUTPUT_S)

    def failure(self, when: str) -> MeasurementError:
        """The sentence about a process that ended when it should not have."""
        self.finish_reading()
        code = self.exit_code or 0
        how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return MeasurementError(f"{self._what} {how} {when}{self.last_line()}", code if code in PASSED_ON else FAILED)

    def last_line(self) -> str:
        """The last line of output after a colon; empty if there is none."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1][:160]}" if lines else ""


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_everything(grace_s: float) -> bool:
    """End all processes below this one: SIGTERM, then SIGKILL after the grace period; whether nothing is left."""
    until = time.monotonic() + grace_s
    process_tree.signal_all(process_tree.descendants(os.getpid()), signal.SIGTERM)
    while process_tree.reap() and time.monotonic() < until:
        time.sleep(_POLL_S)
    return process_tree.kill_descendants()
