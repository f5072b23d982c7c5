"""One run from its start to its outcome."""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import os
import select
import signal
import time
from typing import Any

from lynceus.executors.supervisor import files, process_tree, scratch
from lynceus.executors.supervisor.job_process import become_job
from lynceus.executors.supervisor.learning_curve import requested_curves
from lynceus.executors.supervisor.limits import Limits
from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, finished, timed_out
from lynceus.executors.supervisor.output import Output
from lynceus.executors.supervisor.reports import Reports
from lynceus.executors.supervisor.stop_cause import StopCause
from lynceus.executors.supervisor.streams import Streams
from lynceus.executors.supervisor.timeline import Timeline
from lynceus.executors.supervisor.usage import UsageMeter
from lynceus.trial.text import clean_line, telling_line

RETRY_EXIT = 75
"""EX_TEMPFAIL of sysexits.h: a temporary failure, try again."""
PREEMPTED_EXIT = 85
"""ERESTART of errno.h: the machine is being preempted."""
SERVING_FAILED = 70
"""The runner of `serving` says in its last line how the server or the load failed."""
_CHUNK_BYTES = 65536
_TAIL_BYTES = 4096
"""The end of each stream, to see why a job failed."""
_SET_PIPE_SIZE, _PIPE_BYTES = 1031, 1 << 20
"""F_SETPIPE_SZ of fcntl.h, which Python names from 3.10 on. A job that prints a lot need not wait for us as often."""
_HEARTBEAT_S = 1.0
_SLOWEST_TICK_S = 0.25
_LATE_S = 0.25
"""How much later than its timeout a run may be stopped before its outcome says so."""
_FULL_PIPE_READS = 32
"""At the end a pipe holds no more than so many chunks, unless a process that could not be killed still writes."""
_RESERVED_BYTES = 64 * 1024
"""Disk space for the outcome, reserved at the start."""
_OUTSIDE_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a job for reasons outside it, as a rule."""
_DISK_FULL_MESSAGES = (b"No space left on device", b"ENOSPC", b"Disk quota exceeded")
_MEMORY_MESSAGES = (b"MemoryError", b"bad_alloc", b"OutOfMemoryError", b"Cannot allocate memory", b"out of memory")


class Run:
    """The job's process, its pipes, its clock."""

    def __init__(
        self,
        directory: str,
        request: dict[str, Any],
        environment: dict[str, str],
        secrets: Secrets,
        timeline: Timeline,
        lock: int,
    ) -> None:
        self._directory, self._request, self._environment = directory, request, environment
        self._secrets, self._time, self._lock, self._guard = secrets, timeline, lock, os.getppid()
        timeout_s = request["cap_s"]
        self._timeout_s: float = float("inf") if timeout_s is None else float(timeout_s)
        self._grace_s: float = request["grace_s"]
        self._limits = Limits(request["run"], request.get("cpus"), request.get("memory_bytes"), request["number"])
        self._usage = UsageMeter(self._limits.groups)
        streams = Streams(request.get("limits", []), request.get("ends_when", "never"))
        self._reports = Reports(self._path(files.RESULT), request.get("patterns", {}), secrets, streams)
        self._reports.curves = requested_curves(request, self._timeout_s)
        self._hopeless = ""
        """Why the job will not reach its target."""
        size = request["output_bytes"]
        self._outputs = {name: Output(self._path(name), size, secrets) for name in (files.STDOUT, files.STDERR)}
        self._tails = {files.STDOUT: b"", files.STDERR: b""}
        self._pipes: dict[int, str] = {}
        self._looked = self._heartbeat = 0.0
        self._stop_cause: StopCause | None = None
        """Set when the job is told to stop."""
        self._signal = ""
        """The name of the signal that the supervisor received."""

    def stop_on_signal(self, number: int, frame: object) -> None:
        """A signal handler: stops the job."""
        self._signal = signal.Signals(number).name

    def execute(self, told: int) -> OutcomeRecord | None:
        """Run the job to its end; None if another supervisor, perhaps on another machine, started it first.

        `told` is where the job's process tells the guard that it has begun: a supervisor may be stopped before it could.
        """
        began_s = time.time()
        with contextlib.suppress(OSError):
            files.reserve(self._path(files.ROOM), _RESERVED_BYTES)
        self._open_heartbeat()
        made, problem = self._make_scratch()
        if not files.write_once(self._path(files.STARTED), self._started(began_s)):
            self._limits.remove()
            if made is not None:
                scratch.remove_tree(made)
            return None
        if made is not None:
            scratch.adopt(self._directory, made)
        self._time.began = time.monotonic()
        if self._stop_cause is not None:
            self._time.stopped = self._time.began
        process, start_error = self._start(told) if not problem else (None, "")
        # In parallel with the job, not before it: a slow disk must neither delay nor lengthen a short run.
        _thread.start_new_thread(files.sync, (self._path(files.STARTED),))
        status = None if process is None else self._watch(process)
        self._time.ended = self._time.ended or time.monotonic()
        all_killed = process_tree.kill_descendants()
        self._time.gone = self._time.beat = time.monotonic()
        return {
            **self._outcome(status, problem, start_error, all_killed=all_killed),
            "node": os.uname().nodename,
            "began_s": began_s,
            "metrics": self._reports.metrics,
            "trace": self._reports.trace,
            "usage": self._usage.total(),
        }

    def _make_scratch(self) -> tuple[str | None, str]:
        """The scratch directory under its first name, if the run has one; or why it could not be made. Takes none of the job's time."""

        def stops() -> bool:
            self._stop_cause = self._cause_to_stop(0.0)
            return self._stop_cause is not None

        try:
            return scratch.make(self._directory, self._request, stops), ""
        except scratch.ScratchError as error:
            return None, str(error)

    def _started(self, began_s: float) -> dict[str, Any]:
        """What `started.json` says."""
        return {
            "v": 1,
            "pid": os.getpid(),
            "guard": self._guard,
            "began_s": began_s,
            "monotonic_s": time.monotonic(),
            "boot": files.boot_id(),
            "groups": self._limits.groups,
            "node": os.uname().nodename,
        }

    def _outcome(self, status: int | None, problem: str, start_error: str, *, all_killed: bool) -> OutcomeRecord:
        """How the run ended and what it wrote last; all its processes are gone. `status` is None if it was not started: because of a
        `problem` of this machine, or of an error of the job's command."""
        line, ended = self._time, self._time.ended
        told = line.stopped if line.stopped < ended else 0.0
        if not told:  # perhaps it ended by itself before it could be told
            self._stop_cause = None
        seconds = (told or ended) - line.began
        self._drain(seconds)
        self._limits.remove()
        for output in self._outputs.values():
            output.close()
        stopped = self._stop_cause is not None
        record = failed(problem) if problem and not stopped else self._record(status, seconds, start_error)
        record["seconds"] = seconds
        if told:
            record["stopping_s"] = line.gone - told
        notes = [record["detail"], self._reports.problem, *(one.problem for one in self._outputs.values())]
        if not all_killed:
            notes.append("one of its processes could not be killed")
        record["detail"] = clean_line(self._secrets.masked_text("; ".join(dict.fromkeys(filter(None, notes)))))
        return record

    def _start(self, told: int) -> tuple[int | None, str]:
        """The job's process, or None and why it could not be started."""
        out, to_out = os.pipe()
        err, to_err = os.pipe()
        read_error, write_error = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            self._time.job = float(os.getpid())
            with contextlib.suppress(OSError):  # the guard has died; the supervisor ends the run
                os.write(told, b"!")
            become_job(
                self._directory, self._request, self._environment, self._limits, parent, (to_out, to_err, write_error)
            )
        for descriptor in (to_out, to_err, write_error):
            os.close(descriptor)
        start_error = self._secrets.masked(os.read(read_error, _CHUNK_BYTES)).decode("utf-8", "replace")
        os.close(read_error)
        self._pipes = {out: files.STDOUT, err: files.STDERR}
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _PIPE_BYTES)
        if start_error:
            os.waitpid(process, 0)
            return None, start_error
        return process, ""

    def _watch(self, process: int) -> int:
        """Read output and reports and enforce the timeout until the job ends; returns its wait status."""
        watched = process_tree.open_pidfd(process)
        poll = select.poll()
        for descriptor in (*self._pipes, *watched):
            poll.register(descriptor, select.POLLIN)
        while True:
            now = self._seconds()
            stopped = self._time.stopped
            due = stopped - self._time.began + self._grace_s if stopped else self._timeout_s
            look_at = self._looked + min(max(0.05 * now, 0.01), _SLOWEST_TICK_S)
            look_at = min(look_at, due) if due > self._looked else look_at
            ready = {fd for fd, _ in poll.poll(max(look_at - now, 0.0) * 1000)}
            now = self._seconds()
            self._time.beat = time.monotonic()
            for descriptor in ready & set(self._pipes):
                if not self._read(descriptor, now):
                    poll.unregister(descriptor)
            if not watched or watched & ready:
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    for descriptor in watched:
                        os.close(descriptor)
                    return status
            now = self._seconds()
            if now >= look_at:
                self._looked = now
                self._look(now)

    def _look(self, now: float) -> None:
        """What is done from time to time: read reports, say that we live, stop the job if there is a cause to."""
        self._reports.read_file(now)
        self._usage.sample()
        for output in self._outputs.values():
            output.flush()
        self._write_heartbeat(now)
        if not self._time.stopped:
            if (cause := self._cause_to_stop(now)) is None:
                return
            self._stop_cause, self._time.stopped = cause, time.monotonic()
            process_tree.signal_all(process_tree.descendants(os.getpid()), signal.SIGTERM)
        at_once = self._stop_cause in (StopCause.NO_DIRECTORY, StopCause.NO_GUARD)
        if at_once or time.monotonic() >= self._time.stopped + self._grace_s:
            process_tree.signal_all(process_tree.descendants(os.getpid()), signal.SIGKILL)

    def _seconds(self) -> float:
        """How long the job has run."""
        return time.monotonic() - self._time.began

    def _cause_to_stop(self, now: float) -> StopCause | None:
        if now >= self._timeout_s:
            return StopCause.TIMEOUT
        if os.getppid() != self._guard:
            return StopCause.NO_GUARD
        if os.path.exists(self._path(files.CANCEL)):
            return StopCause.CANCEL
        if not files.is_same(self._path(files.LOCK), self._lock):
            return StopCause.NO_DIRECTORY
        if self._signal:
            return StopCause.SIGNAL
        if self._reports.streams.broken():
            return StopCause.BROKEN
        if self._reports.streams.all_met():
            return StopCause.MET
        self._hopeless = next((why for one in self._reports.curves if (why := one.verdict())), "")
        return StopCause.HOPELESS if self._hopeless else None

    def _read(self, descriptor: int, seconds: float) -> bool:
        """Read some output; false at its end."""
        try:
            data = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        name = self._pipes[descriptor]
        self._tails[name] = (
            data[-_TAIL_BYTES:] if len(data) >= _TAIL_BYTES else (self._tails[name] + data)[-_TAIL_BYTES:]
        )
        if name == files.STDOUT or not self._request.get("serve"):  # what a server prints is not what the load measured
            self._reports.add_output(name, data, seconds)
        self._outputs[name].write(data)
        if len(data) < _CHUNK_BYTES:  # otherwise more is waiting; what is too old by then need not be saved
            self._outputs[name].flush()
        return True

    def _drain(self, seconds: float) -> None:
        for descriptor in self._pipes:
            with contextlib.suppress(OSError):
                for _ in range(_FULL_PIPE_READS):
                    self._time.beat = time.monotonic()
                    if not (select.select([descriptor], [], [], 0)[0] and self._read(descriptor, seconds)):
                        break
            os.close(descriptor)
        self._reports.finish(seconds)

    def _record(self, status: int | None, seconds: float, start_error: str) -> OutcomeRecord:
        """How the run ended. `status` is the job's wait status; None if it could not be started, or was stopped before."""
        if start_error:
            return failed(start_error, reason="job")
        if self._stop_cause is StopCause.CANCEL:
            return failed(f"cancelled after {seconds:.1f} s", reason="user")
        if self._stop_cause is StopCause.HOPELESS:
            return timed_out(seconds, f"stopped after {seconds:.1f} s: {self._hopeless}")
        if seconds >= self._timeout_s:
            return timed_out(seconds, self._overrun(seconds - self._timeout_s))
        if self._stop_cause is StopCause.SIGNAL:
            return {**failed(f"stopped from outside by {self._signal} after {seconds:.1f} s"), "outside": True}
        if self._stop_cause is StopCause.NO_DIRECTORY:
            return failed(f"stopped after {seconds:.1f} s, because its run directory was removed")
        if self._stop_cause is StopCause.NO_GUARD:
            detail = f"stopped after {seconds:.1f} s, because the process that guards its timeout was killed"
            return {**failed(detail), "outside": True}
        if self._stop_cause is StopCause.BROKEN:
            return timed_out(seconds, f"ended early: {self._reports.streams.broken()}, so it is broken beyond doubt")
        if self._stop_cause is StopCause.MET:
            return {**finished(seconds), "detail": "ended early: every limit is met beyond doubt"}
        assert status is not None, "a run that was not started was stopped, or has an error"
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return finished(seconds) if code == 0 else {**self._failure(code), "exit": code}

    def _overrun(self, late_s: float) -> str:
        """What the user should know about a run that was stopped late, or not at all."""
        if late_s < _LATE_S:
            return ""
        if not self._time.stopped:
            return f"it ended by itself {late_s:.1f} s after its timeout: its supervisor had been suspended"
        if self._time.stopped_by_guard:
            return f"stopped {late_s:.1f} s after its timeout, because its supervisor did not answer"
        return f"stopped {late_s:.1f} s after its timeout, because its supervisor was suspended or the machine was busy"

    def _failure(self, code: int) -> OutcomeRecord:
        """Why a job with this exit code (minus the signal, if one killed it) failed."""
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        last_line = self._last_error_line()
        if self._limits.out_of_memory(killed) or self._exceeded_rlimit():
            return failed(f"out of memory{last_line}", reason="oom")
        if self._request.get("serve") and code == SERVING_FAILED and last_line:
            return failed(last_line[2:], reason="job")
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
        """What standard error says last, after a colon and without its full stop, as more may follow; empty if it says nothing.

        Secrets are masked: it is read from the saved output.
        """
        saved = ""
        with contextlib.suppress(OSError):
            saved = (files.read_regular(self._path(files.STDERR), 4096) or b"").decode("utf-8", "replace")
        line = telling_line(saved)
        return f": {clean_line(line.rstrip().rstrip('.'), 200)}" if line else ""

    def _write_heartbeat(self, now: float) -> None:
        """Write how long the run has lasted, by our own clock: clocks of other machines may differ."""
        if now - self._heartbeat >= _HEARTBEAT_S:
            self._heartbeat = now
            with contextlib.suppress(OSError):
                os.pwrite(self._alive, b"%-20.3f\n" % now, 0)

    def _open_heartbeat(self) -> None:
        self._alive = os.open(self._path(files.ALIVE), os.O_WRONLY | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):
            os.pwrite(self._alive, b"%-20.3f\n" % 0.0, 0)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
