"""One run from its start to its outcome."""

from __future__ import annotations

import _thread
import contextlib
import os
import select
import signal
import time
from typing import Any

from lynceus.supervisor import files, tree
from lynceus.supervisor.limits import Limits
from lynceus.supervisor.output import Output
from lynceus.supervisor.readings import Readings

RETRY_EXIT = 75
"""EX_TEMPFAIL of sysexits.h: not my fault, try again."""
PREEMPTED_EXIT = 85
"""ERESTART of errno.h: the machine is being taken back."""
_CHUNK = 65536
_BEAT_S = 1.0
_SLOWEST_TICK_S = 0.25
_ROOM_BYTES = 64 * 1024
"""Kept for the outcome from the start."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
_DISK_WORDS = (b"No space left on device", b"ENOSPC", b"Disk quota exceeded")
_MEMORY_WORDS = (b"MemoryError", b"bad_alloc", b"OutOfMemoryError", b"Cannot allocate memory", b"out of memory")


class Run:
    """The job's process, its pipes, its clock."""

    def __init__(
        self, directory: str, request: dict[str, Any], environment: dict[str, str], secrets: list[bytes]
    ) -> None:
        self._directory, self._request, self._environment = directory, request, environment
        cap = request["cap_s"]
        self._cap_s: float = float("inf") if cap is None else float(cap)
        self._grace_s: float = request["grace_s"]
        self._limits = Limits(request["run"], request.get("cpus"), request.get("memory_bytes"), request["number"])
        self._readings = Readings(self._path(files.RESULT), request.get("patterns", {}))
        most = request["output_bytes"]
        self._outputs = {name: Output(self._path(name), most, secrets) for name in (files.STDOUT, files.STDERR)}
        self._tails = {files.STDOUT: b"", files.STDERR: b""}
        self._pipes: dict[int, str] = {}
        self._began = self._beaten = 0.0
        self._ended_by: str | None = None
        """`cap`, `cancel` or the name of a signal, once we have told the job to end."""
        self._signalled = ""
        self._ended_s: float | None = None

    def told_to_end(self, number: int, frame: object) -> None:
        """A signal handler: somebody outside wants the run to end."""
        self._signalled = signal.Signals(number).name

    def whole(self) -> dict[str, Any] | None:
        """Start, watch, end, tell; nothing if another supervisor, perhaps on another machine, was first."""
        began_s, node = time.time(), os.uname().nodename
        with contextlib.suppress(OSError):
            files.reserve(self._path(files.ROOM), _ROOM_BYTES)
        self._touch()
        started = {"v": 1, "pid": os.getpid(), "began_s": began_s, "groups": self._limits.groups, "node": node}
        if not files.write_first(self._path(files.STARTED), started):
            self._limits.remove()
            return None
        self._began = time.monotonic()
        process, problem = self._start()
        # Beside the job, not before it: a slow disk must neither delay nor lengthen a short run.
        _thread.start_new_thread(files.make_durable, (self._path(files.STARTED),))
        status = None
        if process is not None:
            status = self._watch(process)
        seconds = time.monotonic() - self._began
        cleared = tree.end_descendants()
        self._drain(seconds)
        self._limits.remove()
        for output in self._outputs.values():
            output.close()
        told = self._told(status, seconds, problem)
        notes = [told.get("detail", ""), self._readings.note, *(one.failed for one in self._outputs.values())]
        if not cleared:
            notes.append("a process of it could not be ended")
        told["detail"] = "; ".join(dict.fromkeys(note for note in notes if note))
        return {
            "v": 1,
            "node": node,
            "began_s": began_s,
            "ended_s": time.time(),
            "seconds": min(seconds, self._cap_s) if self._ended_s is None else min(self._ended_s, self._cap_s),
            "metrics": self._readings.metrics,
            "trace": self._readings.trace,
            **told,
        }

    def _start(self) -> tuple[int | None, str]:
        """The job's process, or why there is none."""
        out, to_out = os.pipe()
        err, to_err = os.pipe()
        failed, to_failed = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            self._become_job(parent, to_out, to_err, to_failed)
        for descriptor in (to_out, to_err, to_failed):
            os.close(descriptor)
        problem = os.read(failed, _CHUNK).decode("utf-8", "replace")
        os.close(failed)
        self._pipes = {out: files.STDOUT, err: files.STDERR}
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
        if problem:
            os.waitpid(process, 0)
            return None, problem
        return process, ""

    def _become_job(self, parent: int, out: int, err: int, failed: int) -> None:
        """In the child: its own session, the limits, the pipes, then the command. Never returns."""
        command, where = list(self._request["argv"]), os.path.expanduser(self._request["cwd"])
        if self._request.get("script"):
            command[-1] = self._path(command[-1])
        try:
            os.setsid()
            tree.die_with_parent(parent)
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
            os.write(failed, f"{what!r} cannot be started: {error.strerror}".encode())
        except BaseException as error:
            os.write(failed, f"{command[0]!r} cannot be started: {error}".encode())
        os._exit(127)

    def _watch(self, process: int) -> int:
        """Read, report, enforce the cap, until the job ends; returns its wait status."""
        watched = _watched(process)
        poll = select.poll()
        for descriptor in (*self._pipes, *watched):
            poll.register(descriptor, select.POLLIN)
        kill_at = float("inf")
        while True:
            now = time.monotonic() - self._began
            tick = min(max(0.05 * now, 0.01), _SLOWEST_TICK_S)
            until = kill_at if self._ended_by else self._cap_s
            ready = {fd for fd, _ in poll.poll(max(min(tick, until - now), 0.0) * 1000)}
            now = time.monotonic() - self._began
            for descriptor in ready & set(self._pipes):
                if not self._take(descriptor, now):
                    poll.unregister(descriptor)
            if not watched or watched & ready:
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    for descriptor in watched:
                        os.close(descriptor)
                    return status
            self._readings.file(now)
            self._beat(now)
            if self._ended_by is None and (ended_by := self._wanted_end(now)):
                self._ended_by, self._ended_s = ended_by, now
                kill_at = now + self._grace_s
                tree.signal_all(tree.descendants(os.getpid()), signal.SIGTERM)
            elif now >= kill_at:
                tree.signal_all(tree.descendants(os.getpid()), signal.SIGKILL)

    def _wanted_end(self, now: float) -> str:
        """What ends the run, if anything does."""
        if now >= self._cap_s:
            return "cap"
        return "cancel" if os.path.exists(self._path(files.CANCEL)) else self._signalled

    def _take(self, descriptor: int, seconds: float) -> bool:
        """Some output; false at its end."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        name = self._pipes[descriptor]
        self._tails[name] = (self._tails[name] + data)[-4096:]
        self._readings.output(name, data, seconds)
        self._outputs[name].write(data)
        return True

    def _drain(self, seconds: float) -> None:
        for descriptor in self._pipes:
            with contextlib.suppress(OSError):
                while select.select([descriptor], [], [], 0)[0] and self._take(descriptor, seconds):
                    pass
            os.close(descriptor)
        self._readings.finish(seconds)

    def _told(self, status: int | None, seconds: float, problem: str) -> dict[str, Any]:
        """How it ended, and whose fault it was."""
        if status is None:
            return {"end": "failed", "reason": "job", "detail": problem}
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if self._ended_by == "cancel":
            return {"end": "failed", "reason": "user", "detail": f"ended on request after {seconds:.1f} s"}
        if self._ended_by == "cap":
            return {"end": "capped"}
        if self._ended_by is not None:
            detail = f"ended from outside by {self._ended_by} after {seconds:.1f} s"
            return {"end": "failed", "reason": "infra", "detail": detail, "outside": True}
        if code == 0:
            return {"end": "finished"}
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        said = self._last_words()
        if self._limits.out_of_memory(killed) or self._ran_into_rlimit():
            return {"end": "failed", "reason": "oom", "detail": f"out of memory{said}", "exit": code}
        if code == RETRY_EXIT:
            return {
                "end": "failed",
                "reason": "infra",
                "detail": f"exit code 75, it asks for another try{said}",
                "exit": code,
            }
        if code == PREEMPTED_EXIT:
            detail = f"exit code 85, the machine is taken back{said}"
            return {"end": "failed", "reason": "preempted", "detail": detail, "exit": code}
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            reason = "infra" if -code in _FROM_OUTSIDE else "job"
            outside = reason == "infra"
            return {
                "end": "failed",
                "reason": reason,
                "detail": f"ended by {name}{said}",
                "exit": code,
                "outside": outside,
            }
        if any(word in self._tails[files.STDERR] for word in _DISK_WORDS):
            detail = f"a disk of {os.uname().nodename} is full (exit code {code}{said})"
            return {"end": "failed", "reason": "infra", "detail": detail, "exit": code}
        return {"end": "failed", "reason": "job", "detail": f"exit code {code}{said}", "exit": code}

    def _ran_into_rlimit(self) -> bool:
        return self._limits.memory_by_rlimit and any(word in self._tails[files.STDERR] for word in _MEMORY_WORDS)

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._outputs_tail().splitlines() if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""

    def _outputs_tail(self) -> str:
        """The end of what the job said on standard error, secrets hidden, as it was kept."""
        with contextlib.suppress(OSError), open(self._path(files.STDERR), "rb") as file:
            file.seek(max(os.path.getsize(file.name) - 4096, 0))
            return file.read().decode("utf-8", "replace")
        return ""

    def _beat(self, now: float) -> None:
        """Say how long the run has lasted, by our own clock: clocks of other machines may differ."""
        if now - self._beaten >= _BEAT_S:
            self._beaten = now
            with contextlib.suppress(OSError):
                os.pwrite(self._alive, b"%-20.3f\n" % now, 0)

    def _touch(self) -> None:
        self._alive = os.open(self._path(files.ALIVE), os.O_WRONLY | os.O_CREAT, 0o644)
        with contextlib.suppress(OSError):
            os.pwrite(self._alive, b"%-20.3f\n" % 0.0, 0)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _watched(process: int) -> set[int]:
    """A descriptor that is ready when a process ends; none on old kernels and Pythons, where it must be asked again and again."""
    try:
        return {os.pidfd_open(process)}
    except (AttributeError, OSError):
        return set()
