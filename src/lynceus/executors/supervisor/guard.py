"""The guard of a run: the parent of its supervisor. It has a clock, it can kill, and it does nothing else.

A supervisor reads what the job writes, so a job can keep it busy, and a disk that hangs or a signal can stop it. The guard reads nothing.
If the supervisor does not stop the job at its timeout, the guard does. If the supervisor dies, the kernel gives the job's processes to the
guard, which kills them and records how the run ended.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from lynceus.executors.supervisor import process_tree
from lynceus.executors.supervisor.timeline import Timeline

GUARD_NAME, SUPERVISOR_NAME = b"lynceus-guard", b"lynceus-run"
"""The names of the two processes, as `ps` shows them."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals that stop the job but not the supervisor, which has to record the outcome."""
_LATE_S = 0.5
"""How late a supervisor may be before the guard wakes it, and again before the guard acts in its place."""
_TICK_S = 0.25
_PATIENCE_S = 60.0
"""A supervisor whose job is over, and that has done nothing for so long, is killed."""


class Guard:
    """Forks the supervisor of a run and watches it to its end."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        timeout_s = request["cap_s"]
        self._timeout_s: float = float("inf") if timeout_s is None else float(timeout_s)
        self._grace_s: float = request["grace_s"]
        self.timeline = Timeline()
        self._supervisor = 0
        self._job_ended: int | None = None
        """A descriptor that becomes readable when the job ends."""

    def watch(self, supervise: Callable[[int], None]) -> int:
        """Have `supervise` called in a process of its own, with a descriptor on which it says that the job has begun.

        Returns its exit code when it has ended; minus a signal if one killed it.
        """
        for which in SIGNALS:
            signal.signal(which, self._forward)
        process_tree.adopt_orphans()
        read, write = os.pipe()
        guard = os.getpid()
        self._supervisor = os.fork()
        if self._supervisor == 0:
            os.close(read)
            _become_supervisor(guard, supervise, write)
        os.close(write)
        process_tree.set_name(GUARD_NAME)
        poll = select.poll()
        poll.register(read, select.POLLIN)
        look_at = float("inf")
        while True:
            wait_s = max(look_at - time.monotonic(), 0.0)
            ready = {one for one, _ in poll.poll(None if wait_s == float("inf") else wait_s * 1000)}
            if self._job_ended is not None and self._job_ended in ready:
                self.timeline.ended = self.timeline.ended or time.monotonic()
                poll.unregister(self._job_ended)
            if read in ready and not os.read(read, 1):
                break
            if read in ready and (job := self._open_job()) is not None:
                poll.register(job, select.POLLIN)
            look_at = self._enforce(time.monotonic())
        status = os.waitpid(self._supervisor, 0)[1]
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _forward(self, number: int, frame: object) -> None:
        """A signal handler: what the guard is told, the supervisor is told."""
        if self._supervisor:
            process_tree.signal_all({self._supervisor}, number)

    def _open_job(self) -> int | None:
        try:
            self._job_ended = os.pidfd_open(int(self.timeline.job))
        except (AttributeError, OSError):  # an old kernel or Python, or the job has ended: the supervisor knows when
            return None
        return self._job_ended

    def _enforce(self, now: float) -> float:
        """Do what the supervisor should have done; returns when to look again."""
        line = self.timeline
        if not line.began:
            return float("inf")
        kill_at = line.ended or (line.stopped + self._grace_s if line.stopped else float("inf"))
        due = min(kill_at, line.began + self._timeout_s) if kill_at == float("inf") else kill_at
        late_s = 0.0 if line.stopped_by_guard else _LATE_S
        if now < due + late_s:
            return due + late_s
        process_tree.signal_all({self._supervisor}, signal.SIGCONT)
        if now < due + 2 * late_s:
            return due + 2 * late_s
        if kill_at == float("inf"):
            line.stopped_by_guard = 1.0
            line.stopped = now
            self._signal_job(signal.SIGTERM)
            return now + self._grace_s
        if not line.gone:
            self._signal_job(signal.SIGKILL)
        if now - max(line.beat, kill_at) > _PATIENCE_S:
            process_tree.signal_all({self._supervisor}, signal.SIGKILL)
        return now + _TICK_S

    def _signal_job(self, which: int) -> None:
        process_tree.signal_all(process_tree.descendants(self._supervisor), which)


def _become_supervisor(guard: int, supervise: Callable[[int], None], told: int) -> None:
    """Never returns. If its guard dies, the supervisor is woken; it then ends the run."""
    code = 1
    try:
        process_tree.set_name(SUPERVISOR_NAME)
        process_tree.adopt_orphans()
        process_tree.wake_when_parent_dies()
        supervise(told)
        code = 0
        process_tree.signal_all({guard} & {os.getppid()}, signal.SIGCONT)
    finally:
        os._exit(code)
