"""The connection to SkyPilot: a process in SkyPilot's own environment that receives requests as lines of JSON, see `sdk`."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, InputError

_SDK_SCRIPT = Path(__file__).with_name("sdk.py")
BRIDGE_ENDED = "BridgeEnded"
UNREADABLE = "UnreadableAnswerError"
_MOST_BYTES = 256 << 20
"""A longer line is not an answer."""
_CLOSE_S = 3.0


class SkyError(InfrastructureError):
    """An error that SkyPilot raised, or the end of its process."""

    see = "skypilot.md#troubleshooting"

    def __init__(self, kinds: list[str], text: str) -> None:
        super().__init__(text)
        self.kinds, self.text = kinds, text
        """The names of the error's class in SkyPilot and of its base classes."""


@dataclass
class _SdkProcess:
    """A process and its open calls. When it dies, its own listener thread fails its open calls."""

    process: subprocess.Popen[bytes]
    calls: dict[int, Future[Any]] = field(default_factory=dict)
    lines: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)
    """What a thread writes to it: a process that does not read must not block us. None ends the thread."""
    ready: bool = False
    """It has loaded SkyPilot."""
    ended: bool = False
    """Its listener thread has ended."""

    def kill(self) -> None:
        """End it with everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@dataclass
class Bridge:
    """Starts its process at the first call, and again after it died. Open calls of a dead process fail."""

    python: Path
    """The Python interpreter of SkyPilot's environment."""
    log: Path
    """The file for SkyPilot's own messages."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables besides our own environment, such as the address of the API server."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._sdk: _SdkProcess | None = None

    def check(self) -> None:
        """Raise `InputError` if the interpreter does not exist."""
        if not self.python.exists():
            raise InputError(
                f"executor.python: {self.python} does not exist; install SkyPilot into its own environment "
                "and give the path of its Python."
            )

    def call(self, method: str, **arguments: object) -> Future[Any]:
        """Call a method of `sdk.Sdk`; returns a future of its result."""
        future: Future[Any] = Future()
        with self._lock:
            if self._sdk is None or self._sdk.ended or self._sdk.process.poll() is not None:
                self._sdk = self._start()
            number = next(self._numbers)
            self._sdk.calls[number] = future
            self._sdk.lines.put(json.dumps({"id": number, "method": method, **arguments}).encode() + b"\n")
        return future

    @property
    def is_ready(self) -> bool:
        """Whether the process has loaded SkyPilot, and so can answer."""
        return self._sdk is not None and self._sdk.ready

    def replace(self) -> None:
        """Kill a process that waits for a silent server; its open calls fail, and the next call starts another one."""
        with self._lock:
            if self._sdk is not None:
                self._sdk.kill()

    def _start(self) -> _SdkProcess:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with open(self.log, "ab") as log:
                process = subprocess.Popen(
                    [str(self.python), "-I", str(_SDK_SCRIPT)],
                    env={**os.environ, **self.environment},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise InputError(f"executor.python: {self.python} cannot be started: {error.strerror}.") from error
        sdk = _SdkProcess(process)
        for work in (self._listen, self._write):
            threading.Thread(target=work, args=(sdk,), daemon=True).start()
        return sdk

    @staticmethod
    def _write(sdk: _SdkProcess) -> None:
        """Send requests until the process ends: its listener then fails its open calls."""
        assert sdk.process.stdin is not None
        with contextlib.suppress(OSError), sdk.process.stdin as pipe:
            while (line := sdk.lines.get()) is not None:
                pipe.write(line)
                pipe.flush()

    def _listen(self, sdk: _SdkProcess) -> None:
        process = sdk.process
        assert process.stdout is not None
        why = SkyError([BRIDGE_ENDED], f"the process that talks to SkyPilot ended; see {self.log}")
        while line := process.stdout.readline(_MOST_BYTES):
            if not line.endswith(b"\n") and len(line) < _MOST_BYTES:  # it was killed while it wrote this line
                break
            try:
                why = self._take(sdk, json.loads(line)) or why
            except (ValueError, TypeError, KeyError, AttributeError):
                why = SkyError([UNREADABLE], f"an answer of SkyPilot's process cannot be read; see {self.log}")
                sdk.kill()
                break
        process.stdout.close()
        process.wait()
        with self._lock:
            sdk.ended = True
            left = list(sdk.calls.values())
            sdk.calls.clear()
            sdk.lines.put(None)
        for future in left:
            future.set_exception(why)

    def _take(self, sdk: _SdkProcess, answer: dict[str, Any]) -> SkyError | None:
        """Give an answer to whoever waits for it; returns why the process is about to end, if it says so."""
        error, problem = answer.get("error"), None
        if error is not None:
            problem = SkyError([str(kind) for kind in error["kinds"]], str(error["text"]))
        if answer["id"] == 0:
            sdk.ready = problem is None
            return (
                None if problem is None else SkyError(problem.kinds, f"{self.python} has no SkyPilot: {problem.text}")
            )
        result = answer["result"] if problem is None else None
        with self._lock:
            future = sdk.calls.pop(answer["id"], None)
        if future is not None and problem is not None:
            future.set_exception(problem)
        elif future is not None:
            future.set_result(result)
        return None

    def close(self) -> None:
        """End the process; the API server continues with what was requested."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
            if sdk is None:
                return
            sdk.calls.clear()
            sdk.lines.put(None)
        try:
            sdk.process.wait(_CLOSE_S if sdk.ready else 0.0)
        except subprocess.TimeoutExpired:
            sdk.kill()
            sdk.process.wait()
