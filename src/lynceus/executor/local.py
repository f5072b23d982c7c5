"""Runs on this machine: each with a supervisor of its own that enforces the cap and outlives us."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import lynceus
from lynceus.errors import InputError
from lynceus.executor.command import LocalJob, environment
from lynceus.executor.directory import (
    directories,
    directory_of,
    end_here,
    kept,
    outcome,
    prepare,
    processes_of,
    read_request,
)
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.plugin import NoOptions, Plugin, Setting
from lynceus.executor.shape import Shape
from lynceus.history import Outcome
from lynceus.problem import Problem
from lynceus.supervisor import files
from lynceus.supervisor.look import look
from lynceus.supervisor.output import read_output

_START_S = 10.0
"""A supervisor that has not shown itself after so long is started again; two of them never run the job twice."""
_MOST_STARTS = 3


class LocalExecutor:
    """Runs a job in directories below `root`, one per trial: `root/study-identity/number`. That path is the ticket."""

    def __init__(
        self,
        problem: Problem,
        job: LocalJob,
        root: str | Path = ".lynceus",
        shape: Callable[[int], Shape] | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise InputError(f"executor: local runs need Linux, this is {sys.platform}; use another executor.")
        self._problem, self._job = problem, job
        self._root = Path(root).resolve()
        self._shape = shape
        self._nursery: _Nursery | None = None
        self._starts: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the helper process; runs go on."""
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None

    def launch(self, request: Request) -> str:
        """Prepare the directory, from then on the run can be found; then start its supervisor."""
        directory = directory_of(self._root, request)
        shape = None if self._shape is None else self._shape(request.row)
        prepare(directory, request, self._job, shape=shape)
        self._start(str(directory))
        return str(directory)

    def _start(self, ticket: str) -> None:
        """Ask for a supervisor; it does nothing when there is, or was, one."""
        request = read_request(ticket)
        if request["boot"] != files.boot():
            return  # it was prepared before a reboot, and perhaps ran: `collect` settles it
        if self._nursery is not None and not self._nursery.lives():
            self.close()
        if self._nursery is None:
            self._nursery = _Nursery()
        self._nursery.fork(ticket, environment(self._job, request), list(self._job.secrets.values()))
        _, starts = self._starts.get(ticket, (0.0, 0))
        self._starts[ticket] = (time.monotonic(), starts + 1)

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended: what its supervisor wrote down, or, if that is gone, what can be seen of its last moment."""
        told = kept(ticket)
        if told is None:
            request = read_request(ticket)
            # A run of an earlier boot may have begun even if its note was lost with the power: it is not begun again.
            told = look(ticket, request, lambda: request["boot"] == files.boot() and not self._given_up(ticket))
        return None if told is None else outcome(self._problem, read_request(ticket), told)

    def _given_up(self, ticket: str) -> bool:
        """Whether a supervisor that never showed itself was asked for often enough; asks again when it is time."""
        asked, starts = self._starts.get(ticket, (-math.inf, 0))
        if time.monotonic() - asked < _START_S and self._nursery is not None and self._nursery.lives():
            return False
        if starts >= _MOST_STARTS:
            return True
        self._start(ticket)
        return False

    def cancel(self, ticket: str) -> None:
        """Ask the supervisor to end the run: SIGTERM now, SIGKILL after the grace period."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()

    def output(self, ticket: str, stream: str = files.STDOUT) -> bytes:
        """What a run has written to `stdout` or `stderr` so far, as far as it is kept."""
        return read_output(os.path.join(ticket, stream))

    def belongings(self) -> list[Belonging]:
        """Run directories below the root, and processes of runs that are in them."""
        found = directories(self._root)
        return [*(one for left in found for one in processes_of(left)), *found]

    def end(self, belonging: Belonging) -> None:
        """End the processes of a run, or remove its directory."""
        end_here(belonging)


class _Nursery:
    """Our end of the pipe to the process that forks supervisors."""

    def __init__(self) -> None:
        source = str(Path(lynceus.__file__).parents[1])
        code = f"import sys; sys.path.insert(0, {source!r}); from lynceus.supervisor.nursery import main; main()"
        read, self._write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_DUP2, nothing, 1)]
            command = [sys.executable, "-I", "-S", "-c", code]
            self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsid=True)
        finally:
            os.close(read)
            os.close(nothing)

    def lives(self) -> bool:
        """Whether it can still fork."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return bool(self._pid)

    def fork(self, directory: str, variables: dict[str, str], hidden: list[str]) -> None:
        """Let a supervisor be forked."""
        line = json.dumps({"directory": directory, "environment": variables, "secrets": hidden}).encode() + b"\n"
        while line:
            line = line[os.write(self._write, line) :]

    def close(self) -> None:
        """End it; supervisors live on."""
        os.close(self._write)
        if self._pid:
            os.waitpid(self._pid, 0)


def _make(setting: Setting, options: NoOptions) -> LocalExecutor:
    return LocalExecutor(setting.problem, setting.job, setting.root, setting.shape)


PLUGIN = Plugin(_make, about="processes of this machine, within the processors and memory of the configuration")
