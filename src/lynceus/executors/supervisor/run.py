"""One run from its start to its outcome."""

from __future__ import annotations

import _thread
import contextlib
import enum
import os
import select
import signal
import time
from typing import Any

from lynceus.executors.supervisor import files, process_tree
from lynceus.executors.supervisor.limits import Limits
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, finished, timed_out
from lynceus.executors.supervisor.output import Output
from lynceus.executors.supervisor.reports import Reports

RETRY_EXIT = 75
"""EX_TEMPFAIL of sysexits.h: a temporary failure, try again."""
PREEMPTED_EXIT = 85
"""ERESTART of errno.h: the machine is being preempted."""
_CHUNK_BYTES = 65536
_HEARTBEAT_S = 1.0
_SLOWEST_TICK_S = 0.25
_RESERVED_BYTES = 64 * 1024
"""Disk space for the outcome, reserved at the start."""
_OUTSIDE_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a job for reasons outside it, as a rule."""
_DISK_FULL_MESSAGES = (b"No space left on device", b"ENOSPC", b"Disk quota exceeded")
_MEMORY_MESSAGES = (b"MemoryError", b"bad_alloc", b"OutOfMemoryError", b"Cannot allocate memory", b"out of memory")


class StopCause(enum.Enum):
    """Why the supervisor stopped the job."""

    TIMEOUT = enum.auto()
    CANCEL = enum.auto()
    SIGNAL = enum.auto()
    """The supervisor itself received a signal, from a scheduler for example."""


class Run:
    """The job's process, its pipes, its clock."""

    def __init__(
        self, directory: str, request: dict[str, Any], environment: dict[str, str], secrets: list[bytes]
    ) -> None:
        self._directory, self._request, self._environment = directory, request, environment
        timeout_s = request["cap_s"]
        self._timeout_s: float = float("inf") if timeout_s is None else float(timeout_s)
        self._grace_s: float = request["grace_s"]
        self._limits = Limits(request["run"], request.get("cpus"), request.get("memory_bytes"), request["number"])
        self._reports = Reports(self._path(files.RESULT), request.get("patterns", {}))
        size = request["output_bytes"]
        self._outputs = {name: Output(self._path(name), size, secrets) for name in (files.STDOUT, files.STDERR)}
        self._tails = {files.STDOUT: b"", files.STDERR: b""}
        self._pipes: dict[int, str] = {}
        self._began = self._heartbeat = 0.0
        self._stop_cause: StopCause | None = None
        """Set when the job is told to stop."""
        self._signal = ""
        """The name of the signal that the supervisor received."""
        self._stopped_s: float | None = None
        """When the job was told to stop, in seconds since its start."""

    def stop_on_signal(self, number: int, frame: object) -> None:
        """A signal handler: stops the job."""
        self._signal = signal.Signals(number).name

    def execute(self) -> OutcomeRecord | None:
        """Run the job to its end; None if another supervisor, perhaps on another machine, started it first."""
        began_s, node = time.time(), os.uname().nodename
        with contextlib.suppress(OSError):
            files.reserve(self._path(files.ROOM), _RESERVED_BYTES)
        self._open_heartbeat()
        started = {"v": 1, "pid": os.getpid(), "began_s": began_s, "groups": self._limits.groups, "node": node}
        if not files.write_once(self._path(files.STARTED), started):
            self._limits.remove()
            return None
        self._began = time.monotonic()
        process, start_error = self._start()
        # In parallel with the job, not before it: a slow disk must neither delay nor lengthen a short run.
        _thread.start_new_thread(files.sync, (self._path(files.STARTED),))
        status = None
        if process is not None:
            status = self._watch(process)
        seconds = time.monotonic() - self._began
        all_killed = process_tree.kill_descendants()
        self._drain(seconds)
        self._limits.remove()
        for output in self._outputs.values():
            output.close()
        record = self._record(status, seconds, start_error)
        notes = [record["detail"], self._reports.problem, *(one.problem for one in self._outputs.values())]
        if not all_killed:
            notes.append("one of its processes could not be killed")
        return {
            **record,
            "node": node,
            "began_s": began_s,
            "seconds": min(seconds if self._stopped_s is None else self._stopped_s, self._timeout_s),
            "metrics": self._reports.metrics,
            "trace": self._reports.trace,
            "detail": "; ".join(dict.fromkeys(note for note in notes if note)),
        }

    def _start(self) -> tuple[int | None, str]:
        """The job's process, or None and why it could not be started."""
        out, to_out = os.pipe()
        err, to_err = os.pipe()
        read_error, write_error = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            self._become_job(parent, to_out, to_err, write_error)
        for descriptor in (to_out, to_err, write_error):
            os.close(descriptor)
        start_error = os.read(read_error, _CHUNK_BYTES).decode("utf-8", "replace")
        os.close(read_error)
        self._pipes = {out: files.STDOUT, err: files.STDERR}
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
        if start_error:
            os.waitpid(process, 0)
            return None, start_error
        return process, ""

    def _become_job(self, parent: int, out: int, err: int, write_error: int) -> None:
        """In the child process: its own session, the limits, the pipes, then the command. Never returns."""
        command, where = list(self._request["argv"]), os.path.expanduser(self._request["cwd"])
        if self._request.get("script"):
            command[-1] = self._path(command[-1])
        try:
            os.setsid()
            process_tree.die_with_parent(parent)
            self._limits.enter()
            os.chdir(where)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            for which in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(which, signal.SIG_DFL)
            os.execvpe(command[0], command, self._environment)
        except OSError as error:
            what = where if error.filename == where else command[0]
            os.write(write_error, f"{what!r} cannot be started: {error.strerror}".encode())
        except BaseException as error:
            os.write(write_error, f"{command[0]!r} cannot be started: {error}".encode())
        os._exit(127)

    def _watch(self, process: int) -> int:
        """Read output and reports and enforce the timeout until the job ends; returns its wait status."""
        watched = _open_pidfd(process)
        poll = select.poll()
        for descriptor in (*self._pipes, *watched):
            poll.register(descriptor, select.POLLIN)
        kill_at = float("inf")
        while True:
            now = time.monotonic() - self._began
            tick = min(max(0.05 * now, 0.01), _SLOWEST_TICK_S)
            until = kill_at if self._stop_cause else self._timeout_s
            ready = {fd for fd, _ in poll.poll(max(min(tick, until - now), 0.0) * 1000)}
            now = time.monotonic() - self._began
            for descriptor in ready & set(self._pipes):
                if not self._read(descriptor, now):
                    poll.unregister(descriptor)
            if not watched or watched & ready:
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    for descriptor in watched:
                        os.close(descriptor)
                    return status
            self._reports.read_file(now)
            self._write_heartbeat(now)
            if self._stop_cause is None and (cause := self._cause_to_stop(now)):
                self._stop_cause, self._stopped_s = cause, now
                kill_at = now + self._grace_s
                process_tree.signal_all(process_tree.descendants(os.getpid()), signal.SIGTERM)
            elif now >= kill_at:
                process_tree.signal_all(process_tree.descendants(os.getpid()), signal.SIGKILL)

    def _cause_to_stop(self, now: float) -> StopCause | None:
        if now >= self._timeout_s:
            return StopCause.TIMEOUT
        if os.path.exists(self._path(files.CANCEL)):
            return StopCause.CANCEL
        return StopCause.SIGNAL if self._signal else None

    def _read(self, descriptor: int, seconds: float) -> bool:
        """Read some output; false at its end."""
        try:
            data = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        name = self._pipes[descriptor]
        self._tails[name] = (self._tails[name] + data)[-4096:]
        self._reports.add_output(name, data, seconds)
        self._outputs[name].write(data)
        return True

    def _drain(self, seconds: float) -> None:
        for descriptor in self._pipes:
            with contextlib.suppress(OSError):
                while select.select([descriptor], [], [], 0)[0] and self._read(descriptor, seconds):
                    pass
            os.close(descriptor)
        self._reports.finish(seconds)

    def _record(self, status: int | None, seconds: float, start_error: str) -> OutcomeRecord:
        """How the run ended. `status` is the job's wait status; None if it could not be started."""
        if status is None:
            return failed(start_error, reason="job")
        if self._stop_cause is StopCause.CANCEL:
            return failed(f"cancelled after {seconds:.1f} s", reason="user")
        if self._stop_cause is StopCause.TIMEOUT:
            return timed_out(seconds)
        if self._stop_cause is StopCause.SIGNAL:
            return {**failed(f"stopped from outside by {self._signal} after {seconds:.1f} s"), "outside": True}
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return finished(seconds) if code == 0 else {**self._failure(code), "exit": code}

    def _failure(self, code: int) -> OutcomeRecord:
        """Why a job with this exit code (minus the signal, if one killed it) failed."""
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        last_line = self._last_error_line()
        if self._limits.out_of_memory(killed) or self._exceeded_rlimit():
            return failed(f"out of memory{last_line}", reason="oom")
        if code == RETRY_EXIT:
            return failed(f"exit code {code}, the job asks for a retry{last_line}")
        if code == PREEMPTED_EXIT:
            return failed(f"exit code {code}, the machine was preempted{last_line}", reason="preempted")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            outside = -code in _OUTSIDE_SIGNALS
            record = failed(f"killed by {name}{last_line}", reason="infra" if outside else "job")
            return {**record, "outside": outside}
        if any(message in self._tails[files.STDERR] for message in _DISK_FULL_MESSAGES):
            return failed(f"a disk of {os.uname().nodename} is full (exit code {code}{last_line})")
        return failed(f"exit code {code}{last_line}", reason="job")

    def _exceeded_rlimit(self) -> bool:
        return self._limits.memory_by_rlimit and any(
            message in self._tails[files.STDERR] for message in _MEMORY_MESSAGES
        )

    def _last_error_line(self) -> str:
        """The last line of standard error, after a colon; empty if there is none. Secrets are masked: it is read from the saved output."""
        saved = ""
        with contextlib.suppress(OSError), open(self._path(files.STDERR), "rb") as file:
            file.seek(max(os.path.getsize(file.name) - 4096, 0))
            saved = file.read().decode("utf-8", "replace")
        lines = [line.strip() for line in saved.splitlines() if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""

    def _write_heartbeat(self, now: float) -> None:
        """Write how long the run has lasted, by our own clock: clocks of other machines may differ."""
        if now - self._heartbeat >= _HEARTBEAT_S:
            self._heartbeat = now
            with contextlib.suppress(OSError):
                os.pwrite(self._alive, b"%-20.3f\n" % now, 0)

    def _open_heartbeat(self) -> None:
        self._alive = os.open(self._path(files.ALIVE), os.O_WRONLY | os.O_CREAT, 0o644)
        with contextlib.suppress(OSError):
            os.pwrite(self._alive, b"%-20.3f\n" % 0.0, 0)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _open_pidfd(process: int) -> set[int]:
    """A descriptor that becomes readable when a process ends; an empty set on old kernels and Pythons, where we have to poll."""
    try:
        return {os.pidfd_open(process)}
    except (AttributeError, OSError):
        return set()
