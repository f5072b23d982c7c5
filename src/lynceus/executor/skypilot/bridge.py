"""Our side of the bridge to SkyPilot: a process of SkyPilot's own environment that is asked by lines of JSON."""

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

_FAR_SIDE = Path(__file__).with_name("sdk.py")
BRIDGE_ENDED = "BridgeEnded"


class SkyError(InfrastructureError):
    """SkyPilot refused, or could not be reached."""

    def __init__(self, kinds: list[str], text: str) -> None:
        super().__init__(text)
        self.kinds, self.text = kinds, text
        """The names of the error's class and of its base classes, in SkyPilot's words."""


@dataclass
class _FarSide:
    """A process and what it was asked; each has its own calls, so that those of a dead one are answered by its own listener."""

    process: subprocess.Popen[str]
    calls: dict[int, Future[Any]] = field(default_factory=dict)
    over: bool = False
    """Nobody listens to it any more."""


@dataclass
class Bridge:
    """Starts its process at the first call, and again after it died; a call that the dead one left open fails."""

    python: Path
    """The interpreter of the environment that SkyPilot is installed in."""
    log: Path
    """Where SkyPilot's own chatter goes."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables besides our own, such as the address of the API server."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._far: _FarSide | None = None

    def check(self) -> None:
        """Refuse an interpreter that is not there, before anything runs."""
        if not self.python.exists():
            raise InputError(
                f"executor.python: there is no {self.python}; install SkyPilot into an environment of its own "
                "and name its Python."
            )

    def ask(self, do: str, **arguments: object) -> Future[Any]:
        """Ask for something; the answer comes when it comes."""
        future: Future[Any] = Future()
        with self._lock:
            if self._far is None or self._far.over or self._far.process.poll() is not None:
                self._far = self._started()
            number = next(self._numbers)
            self._far.calls[number] = future
            assert self._far.process.stdin is not None
            with contextlib.suppress(OSError):  # it ended just now: its listener, who waits for our lock, says why
                self._far.process.stdin.write(json.dumps({"id": number, "do": do, **arguments}) + "\n")
                self._far.process.stdin.flush()
        return future

    def _started(self) -> _FarSide:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with open(self.log, "ab") as log:
                process = subprocess.Popen(
                    [str(self.python), "-I", str(_FAR_SIDE)],
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
        far = _FarSide(process)
        threading.Thread(target=self._listen, args=(far,), daemon=True).start()
        return far

    def _listen(self, far: _FarSide) -> None:
        process = far.process
        assert process.stdout is not None
        why = SkyError([BRIDGE_ENDED], f"the process that speaks to SkyPilot ended; {self.log} says why")
        for line in process.stdout:
            if not line.endswith("\n"):  # it was killed in the middle of a word
                break
            said = json.loads(line)
            if said["id"] == 0:  # SkyPilot cannot even be imported
                why = SkyError(said["error"]["kinds"], f"{self.python} has no SkyPilot: {said['error']['text']}")
                continue
            with self._lock:
                future = far.calls.pop(said["id"], None)
            if future is not None and "error" in said:
                future.set_exception(SkyError(said["error"]["kinds"], said["error"]["text"]))
            elif future is not None:
                future.set_result(said["result"])
        process.stdout.close()
        process.wait()
        with self._lock:
            far.over = True
            left = list(far.calls.values())
            far.calls.clear()
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        for future in left:
            future.set_exception(why)

    def close(self) -> None:
        """Let go of the process; what the API server was asked for goes on."""
        with self._lock:
            far, self._far = self._far, None
            if far is None:
                return
            far.calls.clear()
            process = far.process
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
