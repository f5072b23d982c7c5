"""Runs on this machine: each with a supervisor of its own that enforces the cap and outlives us."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import lynceus
from lynceus.errors import InfrastructureError, InputError
from lynceus.executor.command import LocalJob, arguments, environment, write_params
from lynceus.executor.executor import LostRunError, Request
from lynceus.history import End, Outcome, Reason
from lynceus.problem import Problem
from lynceus.supervisor import files, limits, tree
from lynceus.supervisor.output import read_output

_START_S = 10.0
"""A supervisor that has not shown itself after so long is started again; two of them never run the job twice."""
_MOST_STARTS = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """The machine that a run pretends to have."""

    cpus: float | None = None
    """Processors, perhaps a fraction; nothing: all."""
    memory_bytes: int | None = None
    """Nothing: no limit."""

    def __post_init__(self) -> None:
        if self.cpus is not None and not (math.isfinite(self.cpus) and self.cpus > 0):
            raise InputError(f"resources: cpus is {self.cpus!r}; give a positive number.")
        if self.memory_bytes is not None and self.memory_bytes < 1 << 20:
            raise InputError(f"resources: memory is {self.memory_bytes} bytes; give at least 1 MiB.")


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

    def directory(self, request: Request) -> Path:
        """Where the files of a run are. The identity keeps a new study apart from a deleted one of the same name."""
        name = re.sub(r"[^\w.\- ]", "_", request.study)
        return self._root / (f"{name}-{request.identity}" if request.identity else name) / str(request.number)

    def launch(self, request: Request) -> str:
        """Prepare the directory, from then on the run can be found; then start its supervisor."""
        directory = self.directory(request)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not (directory / files.REQUEST).exists():
                self._prepare(request, directory)
        except OSError as error:
            raise InfrastructureError(f"the run directory {directory} cannot be written: {error.strerror}") from error
        self._start(str(directory))
        return str(directory)

    def _prepare(self, request: Request, directory: Path) -> None:
        write_params(request.params, directory)
        shape = Shape() if self._shape is None else self._shape(request.row)
        record = {
            "v": 1,
            "run": secrets.token_hex(8),
            "boot": files.boot(),
            "study": request.study,
            "number": request.number,
            "row": request.row,
            "boots": request.boots,
            "params": dict(request.params),
            "argv": arguments(self._job, request.params, directory),
            "cwd": str(self._job.workdir.resolve()),
            "cap_s": None if math.isinf(request.cap_s) else request.cap_s,
            "grace_s": self._job.grace_s,
            "output_bytes": self._job.output_bytes,
            "patterns": dict(self._job.metrics),
            "cpus": shape.cpus,
            "memory_bytes": shape.memory_bytes,
        }
        files.write_whole(str(directory / files.REQUEST), record)

    def _start(self, ticket: str) -> None:
        """Ask for a supervisor; it does nothing when there is, or was, one."""
        request = self._request(ticket)
        if request["boot"] != files.boot():
            return  # it was prepared before a reboot, and perhaps ran: `collect` settles it
        directory = Path(ticket)
        run_environment = environment(self._job, request["params"], directory, request["run"], request["study"])
        if self._nursery is not None and not self._nursery.lives():
            self.close()
        if self._nursery is None:
            self._nursery = _Nursery()
        self._nursery.fork(ticket, run_environment, list(self._job.secrets.values()))
        _, starts = self._starts.get(ticket, (0.0, 0))
        self._starts[ticket] = (time.monotonic(), starts + 1)

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended: what its supervisor wrote down, or, if that is gone, what can be seen of its last moment."""
        told = files.read_whole(os.path.join(ticket, files.OUTCOME))
        if told is None:
            told = self._look(ticket)
        return None if told is None else self._outcome(self._request(ticket), told)

    def _look(self, ticket: str) -> dict[str, Any] | None:
        """Nothing while the supervisor lives or is about to; otherwise settle in its place."""
        request = self._request(ticket)
        lock = os.open(os.path.join(ticket, files.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            told = files.read_whole(os.path.join(ticket, files.OUTCOME))
            if told is not None:
                return told
            started = files.read_whole(os.path.join(ticket, files.STARTED))
            # A run of an earlier boot may have begun even if its note was lost with the power: it is not begun again.
            if started is None and request["boot"] == files.boot() and not self._given_up(ticket):
                return None
            told = _vanished(ticket, request, started)
            files.write_whole(os.path.join(ticket, files.OUTCOME), told)
            return told
        finally:
            os.close(lock)

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
        Path(ticket, files.CANCEL).touch()

    def output(self, ticket: str, stream: str = files.STDOUT) -> bytes:
        """What a run has written to `stdout` or `stderr` so far, as far as it is kept."""
        return read_output(os.path.join(ticket, stream))

    def _request(self, ticket: str) -> dict[str, Any]:
        request = files.read_whole(os.path.join(ticket, files.REQUEST))
        if request is None:
            raise LostRunError(f"the run directory {ticket} is gone")
        return request

    def _outcome(self, request: dict[str, Any], told: dict[str, Any]) -> Outcome:
        end, reason, detail = End(told["end"]), told.get("reason"), told.get("detail", "")
        missing = [name for name in self._problem.metrics if name not in told["metrics"]]
        if end is End.FINISHED and missing:
            # Nothing can be learnt of such a run; as a failure it is noticed before it is repeated for much money.
            end, reason = End.FAILED, Reason.JOB
            detail = "; ".join(filter(None, [f"it ended well but did not report {', '.join(missing)}", detail]))
        cap_s = math.inf if request["cap_s"] is None else request["cap_s"]
        seconds = min(max(told["seconds"], 1e-6 if end is not End.FAILED else 0.0), cap_s)
        price = float(self._problem.price[request["row"]])
        return Outcome(
            end,
            seconds,
            self._problem.tariff.charge(seconds, price, boots=request["boots"]),
            told["metrics"],
            tuple((moment, progress) for moment, progress in told["trace"]),
            Reason(str(reason)) if end is End.FAILED else None,
            detail,
        )


def _vanished(ticket: str, request: dict[str, Any], started: dict[str, Any] | None) -> dict[str, Any]:
    """The supervisor is gone without a word: end what it left, and take its last sign of life for the end."""
    groups = [] if started is None else started["groups"]
    cleared = tree.end_run(request["run"], limits.members(groups))
    limits.remove_groups(groups)
    seconds, detail = 0.0, "its supervisor could not be started, or the machine was restarted"
    if started is not None:
        try:
            seconds = max(os.path.getmtime(os.path.join(ticket, files.ALIVE)) - started["began_s"], 0.0)
        except OSError:
            seconds = 0.0
        detail = "its supervisor vanished (killed, or the machine went down); charged up to its last sign of life"
    else:
        log = read_output(os.path.join(ticket, files.LOG)).decode("utf-8", "replace").strip().splitlines()
        detail += f": {log[-1]}" if log else ""
    if not cleared:
        detail += "; a process of it could not be ended"
    return {
        "v": 1,
        "end": "failed",
        "reason": "infra",
        "seconds": seconds,
        "metrics": {},
        "trace": [],
        "detail": detail,
        "ended_s": time.time(),
    }


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
