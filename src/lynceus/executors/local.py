"""Runs on this machine. Each has its own supervisor, which enforces the timeout and outlives Lynceus."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lynceus
from lynceus.errors import InputError
from lynceus.executors.command import JobCommand, environment
from lynceus.executors.interface import LostRunError, Outage, OwnedResource, Request
from lynceus.executors.plugin import ExecutorContext, NoOptions, Plugin
from lynceus.executors.resources import Resources
from lynceus.executors.run_directory import (
    directory_of,
    prepare,
    read_request,
    remove_local,
    run_directories,
    running_processes,
    to_outcome,
)
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.ending import end_by_force, end_lost_run, job_processes, wake_supervisors
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.status import read_outcome, settled_outcome
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Outcome

_START_S = 10.0
"""A supervisor that has not started after this time is started again; two of them never run the job twice."""
_MAX_STARTS = 3
_LOOK_S = 1.0
"""Seconds between two looks at whether a supervisor does what it should."""
_CANCEL_S = 5.0
"""A supervisor that has not stopped a cancelled run this long after the grace period is killed."""
_OVERDUE_S = 15.0
"""The same for one that has not stopped its run at the timeout; its guard should have done so long before."""
_SILENT_S = 15.0
"""A supervisor without a heartbeat for so long is suspended, or cannot write."""


@dataclass(frozen=True)
class _Heartbeat:
    """The last sign of life of a supervisor. Its file may have another clock than we, so we note when it changed."""

    changed_ns: int
    noticed: float
    """When we noticed the change, by our monotonic clock."""
    since_s: float
    """The same in seconds since the epoch."""
    silent_s: float = 0.0

    @classmethod
    def seen(cls, ticket: str, now: float, before: _Heartbeat | None) -> _Heartbeat:
        """What is seen `now`, after what was seen before."""
        try:
            changed_ns = os.stat(os.path.join(ticket, files.ALIVE)).st_mtime_ns
        except OSError:  # it has not begun
            changed_ns = 0
        if before is None or changed_ns != before.changed_ns or not changed_ns:
            return cls(changed_ns, now, time.time())
        return replace(before, silent_s=now - before.noticed)


class LocalExecutor:
    """Runs a job in directories below `root`, one per trial: `root/study-identity/number`. That path is the ticket."""

    def __init__(
        self,
        problem: Problem,
        job: JobCommand,
        root: str | Path = ".lynceus",
        resources: Callable[[int], Resources] | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise InputError(f"executor: local runs need Linux, this is {sys.platform}; use another executor.")
        self._problem, self._job = problem, job
        self._root = Path(root).resolve()
        self._resources = resources
        self._fork_server: _ForkServer | None = None
        self._starts: dict[str, tuple[float, int]] = {}
        """Ticket → when a supervisor was last requested, and how often."""
        self._cancelled: dict[str, float] = {}
        """Ticket → when we first saw that the run is cancelled, by our own clock."""
        self._looked: dict[str, float] = {}
        """Ticket → when we last looked whether its supervisor answers."""
        self._beats: dict[str, _Heartbeat] = {}

    def close(self) -> None:
        """End the fork server; runs continue."""
        if self._fork_server is not None:
            self._fork_server.close()
            self._fork_server = None

    def launch(self, request: Request) -> str:
        """Prepare the run directory, by which the run can be found again; then start its supervisor."""
        directory = directory_of(self._root, request)
        resources = None if self._resources is None else self._resources(request.row)
        prepare(directory, request, self._job, resources=resources)
        self._start(str(directory))
        return str(directory)

    def _start(self, ticket: str) -> None:
        """Request a supervisor; it does nothing if the run has, or had, one."""
        request = read_request(ticket)
        if request["boot"] != files.boot_id():
            return  # prepared before a reboot, and perhaps started: `collect` settles it
        if self._fork_server is not None and not self._fork_server.is_alive():
            self.close()
        if self._fork_server is None:
            self._fork_server = _ForkServer()
        self._fork_server.fork(ticket, environment(self._job, request), list(self._job.secrets.values()))
        _, starts = self._starts.get(ticket, (0.0, 0))
        self._starts[ticket] = (time.monotonic(), starts + 1)

    def collect(self, ticket: str) -> Outcome | None:
        """What the supervisor recorded; if the supervisor is dead, what can be seen of the run's last moment."""
        try:
            request = read_request(ticket)
        except LostRunError as error:
            raise self._lost(ticket, error) from None
        record = read_outcome(ticket)
        if record is None:
            record = self._settled(ticket, request)
        if record is not None:
            self._beats.pop(ticket, None)
        if record is None and self._is_overdue(ticket, request):
            end_by_force(ticket)
            record = self._settled(ticket, request)
        return None if record is None else to_outcome(self._problem, request, record)

    def outage(self) -> Outage | None:
        """A supervisor that gives no sign of life: the timeout of its run holds, but what it records is not to be had yet."""
        silent = [(one.since_s, ticket) for ticket, one in self._beats.items() if one.silent_s > _SILENT_S]
        if not silent:
            return None
        since_s, ticket = min(silent)
        return Outage(f"a run cannot write to {ticket} (is the disk full or read-only?), or is suspended", since_s)

    def _settled(self, ticket: str, request: Mapping[str, Any]) -> OutcomeRecord | None:
        # A run of an earlier boot may have started, even if the power failure lost its `started.json`: do not start it again.
        return settled_outcome(
            ticket, request, lambda: request["boot"] == files.boot_id() and not self._start_failed(ticket)
        )

    def _lost(self, ticket: str, error: LostRunError) -> LostRunError:
        """End what is left of a run whose directory is gone, before anything else is started; the error says for how long it ran."""
        ran_s = end_lost_run(ticket)
        if ran_s is None and ticket in self._starts and error.ran_s is None:
            ran_s = time.monotonic() - self._starts[ticket][0]
        return LostRunError(str(error), error.ran_s if ran_s is None else ran_s)

    def _is_overdue(self, ticket: str, request: Mapping[str, Any]) -> bool:
        """Whether neither its supervisor nor its guard answer: the run was cancelled long ago, or should have been stopped long ago."""
        now = time.monotonic()
        if now - self._looked.get(ticket, -math.inf) < _LOOK_S:
            return False
        self._looked[ticket] = now
        self._beats[ticket] = _Heartbeat.seen(ticket, now, self._beats.get(ticket))
        if os.path.exists(os.path.join(ticket, files.CANCEL)):
            wake_supervisors(ticket)
            return now - self._cancelled.setdefault(ticket, now) > float(request["grace_s"]) + _CANCEL_S
        started = files.read_json(os.path.join(ticket, files.STARTED)) or {}
        if request["cap_s"] is None or started.get("boot") != files.boot_id():
            return False
        late_s = now - float(started["monotonic_s"]) - float(request["cap_s"]) - float(request["grace_s"])
        # A supervisor whose job is over may have to wait for a disk, and then has the only record of it.
        return late_s > _OVERDUE_S and bool(job_processes(ticket, request["run"], started["groups"]))

    def _start_failed(self, ticket: str) -> bool:
        """Whether all attempts to start a supervisor have failed; makes the next attempt when it is time."""
        asked, starts = self._starts.get(ticket, (-math.inf, 0))
        if time.monotonic() - asked < _START_S and self._fork_server is not None and self._fork_server.is_alive():
            return False
        if starts >= _MAX_STARTS:
            return True
        self._start(ticket)
        return False

    def cancel(self, ticket: str) -> None:
        """Ask the supervisor to stop the run: SIGTERM now, SIGKILL after the grace period. If it does not, `collect` kills it, too."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch(mode=0o600)
            wake_supervisors(ticket)

    def owned_resources(self) -> list[OwnedResource]:
        """Run directories below the root, and the living processes of their runs."""
        found = run_directories(self._root)
        return [*running_processes(found), *found]

    def remove(self, resource: OwnedResource) -> None:
        """Kill the processes of a run with its supervisor, or delete its directory."""
        remove_local(resource)


class _ForkServer:
    """Our end of the pipe to the process that forks supervisors."""

    def __init__(self) -> None:
        source = str(Path(lynceus.__file__).parents[1])
        code = f"import sys; sys.path.insert(0, {source!r}); from lynceus.executors.supervisor.fork_server import main; main()"
        read, self._write = os.pipe()
        devnull = os.open(os.devnull, os.O_RDWR)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_DUP2, devnull, 1)]
            command = [sys.executable, "-I", "-S", "-c", code]
            self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsid=True)
        finally:
            os.close(read)
            os.close(devnull)

    def is_alive(self) -> bool:
        """Whether it can still fork."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return bool(self._pid)

    def fork(self, directory: str, variables: dict[str, str], secrets: list[str]) -> None:
        """Request a supervisor for a run directory."""
        line = json.dumps({"directory": directory, "environment": variables, "secrets": secrets}).encode() + b"\n"
        while line:
            line = line[os.write(self._write, line) :]

    def close(self) -> None:
        """End the fork server; supervisors continue."""
        os.close(self._write)
        if self._pid:
            os.waitpid(self._pid, 0)


def _make(context: ExecutorContext, options: NoOptions) -> LocalExecutor:
    return LocalExecutor(context.problem, context.job, context.root, context.resources)


PLUGIN = Plugin(_make, about="processes of this machine, limited to the CPUs and memory of the configuration")
