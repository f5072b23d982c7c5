"""Our end of the pipe to the driver process, which is started when it is needed, and restarted with growing pauses when it has ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import lynceus
from lynceus.errors import InfrastructureError
from lynceus.executors.outage_log import OutageLog
from lynceus.trial.text import clean_line

_START_S = 90.0
"""How long the driver may take until it turns to the cluster: it loads Ray first."""
_CONNECT_S = 60.0
"""How long connecting to a cluster may take."""
_PATIENT_S = 20.0
"""How long callers wait for a connection that do not ask again."""
_SILENT_S = 5.0
"""A cluster that does not let us connect for so long is unreachable, though we go on trying."""
_ANSWER_S = 5.0
"""How long to wait for an answer; one that comes later is discarded."""
_MOST_BYTES = 1 << 30
_UNRESPONSIVE_S = 45.0
"""A driver that does not answer for so long is killed and replaced."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_CLOSE_S = 3.0


class DriverUnavailableError(InfrastructureError):
    """The cluster cannot be asked now."""

    see = "ray.md#troubleshooting"


class DriverClient:
    """The connection to one cluster; has at most one driver process at a time."""

    def __init__(self, address: str) -> None:
        self.outages = OutageLog()
        self._address, self._owner = address, os.getpid()
        self._driver: subprocess.Popen[bytes] | None = None
        self._connected = False
        self._began_s = 0.0
        self._connecting_s: float | None = None
        """Since when the driver has been waiting for the cluster."""
        self._rest = b""
        self._asked_s, self._pending = 0.0, 0
        self._pause_s, self._retry_s = _FIRST_PAUSE_S, float("-inf")
        self._unreachable_since: float | None = None
        self._problem = "the connection is being established"

    @property
    def connected(self) -> bool:
        """Whether the cluster answers, as far as we know."""
        return self._connected

    @property
    def unreachable_s(self) -> float:
        """For how many seconds the cluster has been unreachable."""
        return 0.0 if self._unreachable_since is None else time.monotonic() - self._unreachable_since

    def call(self, method: str, **arguments: Any) -> Any:
        """The driver's answer; `DriverUnavailableError` at once if there is no connection."""
        self._ensure_connected()
        while self._pending:
            self._next_answer(0.0)
        self._asked_s = time.monotonic()
        self._send({"method": method, **arguments})
        self._pending = 1
        answer = self._next_answer(_ANSWER_S)
        if "answer" not in answer:
            self._give_up(str(answer.get("error", "an answer that cannot be read")))
        self._reached()
        return answer["answer"]

    def call_when_connected(self, method: str, **arguments: Any) -> Any:
        """Like `call`, but waits until the connection is established or seems to have failed."""
        while True:
            try:
                return self.call(method, **arguments)
            except DriverUnavailableError:
                silent_s = 0.0 if self._connecting_s is None else time.monotonic() - self._connecting_s
                if self._driver is None or self._connected or silent_s > _PATIENT_S:
                    raise
                time.sleep(0.02)

    def close(self) -> None:
        """End the driver process; runs continue."""
        driver, self._driver, self._connected = self._driver, None, False
        if driver is None:
            return
        for pipe in (driver.stdin, driver.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            driver.wait(_CLOSE_S if self._unreachable_since is None else 0.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()

    def _next_answer(self, timeout_s: float) -> Any:
        """The next pending answer. Does not wait for long: a later call will receive it."""
        answer = self._read_answer(timeout_s)
        if answer is None:
            silent_s = time.monotonic() - self._asked_s
            if silent_s > _UNRESPONSIVE_S:
                self._give_up(f"no answer for {silent_s:.0f} s")
            raise self._unreachable(f"no answer for {silent_s:.0f} s", silent_s)
        self._pending -= 1
        return answer

    def _ensure_connected(self) -> None:
        if os.getpid() != self._owner:  # we are a fork: the driver belongs to our parent
            self._owner, self._driver, self._connected = os.getpid(), None, False
        if self._driver is None:
            if time.monotonic() < self._retry_s:
                raise DriverUnavailableError(self._problem)
            self._start()
        if not self._connected:
            self._connect()

    def _connect(self) -> None:
        """Read how far the driver has come: it reports that it turns to the cluster, and then that it is connected."""
        while not self._connected:
            answer, now = self._read_answer(0.0), time.monotonic()
            if answer is None:
                if self._connecting_s is None:
                    if now - self._began_s > _START_S:
                        self._give_up(f"Ray could not be loaded in {_START_S:g} s")
                    raise DriverUnavailableError(self._problem)
                silent_s = now - self._connecting_s
                if silent_s > _CONNECT_S:
                    self._give_up(f"no connection after {_CONNECT_S:g} s")
                if silent_s > _SILENT_S:
                    raise self._unreachable(f"no connection after {silent_s:.0f} s", silent_s)
                raise DriverUnavailableError(self._problem)
            if "connecting" in answer:
                self._connecting_s = now
            elif "connected" in answer:
                self._connected, self._pause_s = True, _FIRST_PAUSE_S
                self._reached()
            else:
                self._give_up(str(answer.get("error", "an answer that cannot be read")))

    def _reached(self) -> None:
        self._unreachable_since = self._connecting_s = None
        self.outages.answered(self._address)

    def _unreachable(self, problem: str, for_s: float = 0.0) -> DriverUnavailableError:
        problem = clean_line(problem, 200)
        since = time.monotonic() - for_s
        self._unreachable_since = since if self._unreachable_since is None else self._unreachable_since
        self.outages.failed(self._address, f"the Ray cluster {self._address}: {problem}", for_s=for_s)
        return DriverUnavailableError(problem)

    def _start(self) -> None:
        source = str(Path(lynceus.__file__).parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).strip(":"),
        }
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "lynceus.executors.ray.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for Lynceus
        )
        assert self._driver.stdin is not None
        os.set_blocking(self._driver.stdin.fileno(), False)
        self._began_s, self._rest, self._pending, self._connecting_s = time.monotonic(), b"", 0, None
        self._send({"address": self._address, "parent": os.getpid()})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._driver is not None
        assert self._driver.stdin is not None
        data = memoryview(json.dumps(message).encode() + b"\n")
        pipe = self._driver.stdin
        try:
            while data:
                if not select.select([], [pipe], [], _ANSWER_S)[1]:
                    self._give_up(f"the driver has read nothing for {_ANSWER_S:g} s")
                data = data[os.write(pipe.fileno(), data[: select.PIPE_BUF]) :]
        except OSError:
            self._give_up("the connection broke")

    def _read_answer(self, timeout_s: float) -> Any:
        """One answer; None if none arrives in time."""
        assert self._driver is not None
        assert self._driver.stdout is not None
        until = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            if not select.select([self._driver.stdout], [], [], max(until - time.monotonic(), 0.0))[0]:
                return None
            data = os.read(self._driver.stdout.fileno(), 1 << 16)
            if not data:
                self._give_up("the connection broke")
            self._rest += data
            if len(self._rest) > _MOST_BYTES:
                self._give_up(f"an answer of more than {_MOST_BYTES >> 20} MiB")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        return answer if isinstance(answer, dict) else {"error": "an answer that cannot be read"}

    def _give_up(self, problem: str) -> NoReturn:
        """End this driver, and pause before the next one is started."""
        error = self._unreachable(problem)
        self._problem = str(error)
        now = time.monotonic()
        self._retry_s, self._pause_s = now + self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self.close()
        raise error
