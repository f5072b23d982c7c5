"""The connection to SkyPilot: a process in SkyPilot's own environment that receives requests as lines of JSON, see `sdk`."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
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


class SkyError(InfrastructureError):
    """An error that SkyPilot raised, or the end of its process."""

    def __init__(self, kinds: list[str], text: str) -> None:
        super().__init__(text)
        self.kinds, self.text = kinds, text
        """The names of the error's class in SkyPilot and of its base classes."""


@dataclass
class _SdkProcess:
    """A process and its open calls. When it dies, its own listener thread fails its open calls."""

    process: subprocess.Popen[str]
    calls: dict[int, Future[Any]] = field(default_factory=dict)
    ended: bool = False
    """Its listener thread has ended."""


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
            assert self._sdk.process.stdin is not None
            with contextlib.suppress(OSError):  # it just ended: its listener, which waits for our lock, fails the call
                self._sdk.process.stdin.write(json.dumps({"id": number, "method": method, **arguments}) + "\n")
                self._sdk.process.stdin.flush()
        return future

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
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,
                )
        except OSError as error:
            raise InputError(f"executor.python: {self.python} cannot be started: {error.strerror}.") from error
        sdk = _SdkProcess(process)
        threading.Thread(target=self._listen, args=(sdk,), daemon=True).start()
        return sdk

    def _listen(self, sdk: _SdkProcess) -> None:
        process = sdk.process
        assert process.stdout is not None
        why = SkyError([BRIDGE_ENDED], f"the process that talks to SkyPilot ended; see {self.log}")
        for line in process.stdout:
            if not line.endswith("\n"):  # it was killed while it wrote this line
                break
            answer = json.loads(line)
            if answer["id"] == 0:  # SkyPilot cannot be imported
                why = SkyError(answer["error"]["kinds"], f"{self.python} has no SkyPilot: {answer['error']['text']}")
                continue
            with self._lock:
                future = sdk.calls.pop(answer["id"], None)
            if future is not None and "error" in answer:
                future.set_exception(SkyError(answer["error"]["kinds"], answer["error"]["text"]))
            elif future is not None:
                future.set_result(answer["result"])
        process.stdout.close()
        process.wait()
        with self._lock:
            sdk.ended = True
            left = list(sdk.calls.values())
            sdk.calls.clear()
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        for future in left:
            future.set_exception(why)

    def close(self) -> None:
        """End the process; the API server continues with what was requested."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
            if sdk is None:
                return
            sdk.calls.clear()
            process = sdk.process
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
