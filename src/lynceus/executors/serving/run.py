"""One measurement from the server's start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from lynceus.executors.serving import load_command, ports
from lynceus.executors.serving.errors import FAILED, MeasurementError
from lynceus.executors.serving.http_stream import HOST
from lynceus.executors.serving.measurements import MEASURING, metrics_of
from lynceus.executors.serving.openai_load import Load, LoadRun
from lynceus.executors.serving.readiness import wait_until_ready
from lynceus.executors.serving.server import Program, end_everything
from lynceus.executors.supervisor import files, process_tree

_REPORT_S = 1.0
"""How often progress is reported."""
_SPARE_S = 1.0
"""A further load has to end so long before the run's timeout."""
_RISES = 1.01
"""More load is useful while it raises the throughput by this factor."""
_RELEASE_S = 2.0
"""How long after the end of all processes a port may still be in use."""


def main(directory: str) -> int:
    """Measure the request of a run directory; returns the exit code. The last line of standard error says why it failed."""
    request = files.read_json(os.path.join(directory, files.REQUEST))
    if request is None:
        return _failed("the run directory is gone")
    process_tree.adopt_orphans()
    for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(which, _stop)
    try:
        reservation = ports.reserve(request["serve"]["port"])
    except MeasurementError as error:
        return _failed(str(error), error.code)
    code, problem = 0, ""
    try:
        Measurement(directory, request, reservation.port).run()
    except MeasurementError as error:
        code, problem = error.code, str(error)
    except _Stopped as stopped:
        code = 128 + stopped.number
    finally:
        problem = _end(reservation.port, float(request["grace_s"]), problem)
        reservation.release()
    return _failed(problem, code or FAILED) if problem else code


class _Stopped(SystemExit):
    """The supervisor stops the run. Event loops let this kind of exception pass."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def _stop(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: the server has its grace period
    raise _Stopped(number)


def _failed(problem: str, code: int = FAILED) -> int:
    sys.stderr.write("\n" + " ".join(problem.split()) + "\n")
    sys.stderr.flush()
    return code


def _end(port: int, grace_s: float, problem: str) -> str:
    """End the server with everything that it started; returns what is wrong: the first problem counts."""
    all_ended = end_everything(grace_s)
    if problem:
        return problem
    if not all_ended:
        return "a process of the server could not be ended"
    until = time.monotonic() + _RELEASE_S
    while not ports.is_free(port):
        if time.monotonic() > until:
            return (
                f"the server has ended, but something outside the run still listens on port {port}: a container or a service that it "
                "started; let the server run in the foreground"
            )
        time.sleep(0.05)
    return ""


class Measurement:
    """The server and the load of one run."""

    def __init__(self, directory: str, request: dict[str, Any], port: int) -> None:
        self._directory, self._request, self._port = directory, request, port
        self._serve: dict[str, Any] = request["serve"]
        url = f"http://{HOST}:{port}"
        self._names = {"port": str(port), "url": url}
        self._environment = {**os.environ, "LYNCEUS_PORT": str(port), "LYNCEUS_URL": url, **self._names}
        self._reported = 0.0
        self._began = time.monotonic()

    def run(self) -> None:
        """Start, wait, measure and report."""
        argv = [self._filled(word) for word in self._request["argv"]]
        if self._request.get("script"):
            argv[-1] = os.path.join(self._directory, argv[-1])
        server = Program("the server", argv, self._environment, 2)
        ready_s = wait_until_ready(server, self._port, self._serve["ready"])

        def alive() -> None:
            if server.exit_code is not None:
                raise server.failure("under load")

        metrics = self._measured(self._serve["load"], alive, self._progress)
        self._report({**metrics, "ready_s": ready_s})
        if self._serve.get("ramp"):
            self._climb(self._serve["ramp"], metrics, alive)
        self._report({"progress": 1.0})

    def _climb(self, ramp: dict[str, Any], metrics: dict[str, float], alive: Callable[[], None]) -> None:
        """Measure further loads on the same server: higher ones while every limit is kept, lower ones while one is broken."""
        limits = ramp["limits"]
        rising = _all_kept(limits, metrics)
        for each in (ramp["higher"] if rising else ramp["lower"])[: ramp["most"]]:
            if not self._has_time(ramp["measuring_s"] or 2 * metrics[MEASURING]):
                return
            before = metrics
            try:
                metrics = self._measured(each["load"], alive, lambda share: None)
            except MeasurementError as error:  # what was measured before is paid for, and counts
                sys.stderr.write(f"\n{each['row']} was not measured: {error}\n")
                return
            self._report({f"{name}@{each['row']}": value for name, value in metrics.items()})
            more = metrics.get("throughput", math.inf) > _RISES * before.get("throughput", 0.0)
            if _all_kept(limits, metrics) is not rising or (rising and not more):
                return

    def _has_time(self, needed_s: float) -> bool:
        timeout_s = self._request["cap_s"]
        return timeout_s is None or time.monotonic() - self._began + needed_s + _SPARE_S <= timeout_s

    def _measured(
        self, load: dict[str, Any], alive: Callable[[], None], progress: Callable[[float], None]
    ) -> dict[str, float]:
        began = time.monotonic()
        metrics = self._drive(load, alive, progress)
        return {**metrics, MEASURING: time.monotonic() - began}

    def _drive(
        self, load: dict[str, Any], alive: Callable[[], None], progress: Callable[[float], None]
    ) -> dict[str, float]:
        load, stop_after_s = dict(load), self._serve["stop_after_s"]
        if "argv" in load:
            argv = [self._filled(word) for word in load["argv"]]
            return load_command.drive(argv, self._environment, load.get("results", ""), stop_after_s, alive)
        max_errors = load.pop("max_errors")
        sent = Load(stop_after_s=stop_after_s, **load)
        exchanges = asyncio.run(LoadRun(sent, self._port, alive, progress).drive())
        return metrics_of(exchanges, sent, max_errors)

    def _progress(self, share: float) -> None:
        if time.monotonic() - self._reported >= _REPORT_S:
            self._reported = time.monotonic()
            self._report({"progress": share})

    def _report(self, values: dict[str, float]) -> None:
        line = json.dumps(values) + "\n"
        with contextlib.suppress(OSError), open(self._environment["LYNCEUS_RESULT"], "a", encoding="utf-8") as file:
            file.write(line)

    def _filled(self, word: str) -> str:
        for name, value in self._names.items():
            word = word.replace(f"${{{name}}}", value)
        return word


def _all_kept(limits: list[dict[str, Any]], metrics: dict[str, float]) -> bool:
    """Whether no limit is broken by what the load measured."""
    for one in limits:
        value = metrics.get(one["name"])
        if value is not None and (value < one["bound"] if one["at_least"] else value > one["bound"]):
            return False
    return True
