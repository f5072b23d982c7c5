"""Load that another program drives: `vllm bench serve`, guidellm, a script."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from lynceus.executors.serving.errors import MeasurementError
from lynceus.executors.serving.load_results import Table, metrics_in
from lynceus.executors.serving.server import Program

_POLL_S = 0.05
_STOPPING_S = 5.0
"""How long a load that was told to end may take to print its results."""
_MOST_BYTES = 64 << 20


class _LoadProgram(Program):
    """A program whose output is also read as a table of results."""

    def __init__(self, argv: list[str], environment: dict[str, str], to: int) -> None:
        self.table, self._line = Table(), b""
        super().__init__("the load", argv, environment, to)

    def passed_on(self, data: bytes) -> None:
        """Also read it."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self.table.add(line.decode("utf-8", "replace"))
        self._line = self._line[-4096:]
        super().passed_on(data)


def drive(
    argv: list[str], environment: dict[str, str], results: str, stop_after_s: float | None, alive: Callable[[], None]
) -> dict[str, float]:
    """Run a load command to its end, or until it is told to stop; returns what it measured, as far as we can read it.

    Whatever it reports itself (LYNCEUS_RESULT, expressions of `metrics`) reaches the study anyway.
    """
    began = time.monotonic()
    load = _LoadProgram(argv, environment, 1)
    stopped = False
    while load.exit_code is None:
        alive()
        if stop_after_s is not None and time.monotonic() - began >= stop_after_s:
            stopped = True
            load.signal(signal.SIGINT)
            if not load.wait(_STOPPING_S):
                load.signal(signal.SIGKILL)
            break
        time.sleep(_POLL_S)
    if not load.wait(_STOPPING_S):
        raise MeasurementError("the load could not be ended")
    alive()
    if load.exit_code != 0 and not stopped:
        raise load.failure("before it had measured anything")
    load.finish_reading()
    return {**load.table.metrics, **(_read(results, began, environment) if results else {})}


def _read(results: str, began: float, environment: dict[str, str]) -> dict[str, float]:
    """The metrics of the file that the load wrote; one that was there before is not its."""
    path = results
    for name in ("LYNCEUS_SCRATCH", "LYNCEUS_PORT", "HOME"):
        path = path.replace(f"${{{name}}}", environment.get(name, "")).replace(f"${name}", environment.get(name, ""))
    try:
        age_s = time.time() - os.stat(path).st_mtime
        if age_s > time.monotonic() - began + 2.0:
            raise MeasurementError(f"the load did not write its results: {path!r} is older than the run")
        with open(path, encoding="utf-8", errors="replace") as file:
            return metrics_in(file.read(_MOST_BYTES))
    except OSError as error:
        raise MeasurementError(f"the load did not write its results to {path!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"the results of the load in {path!r} cannot be read: {error}") from None
