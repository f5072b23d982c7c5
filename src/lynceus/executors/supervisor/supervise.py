"""Supervising a run: one supervisor and one outcome, however many are started."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
import traceback
from typing import Any

from lynceus.executors.supervisor import files, scratch
from lynceus.executors.supervisor.guard import SIGNALS, Guard
from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, not_started
from lynceus.executors.supervisor.run import Run
from lynceus.executors.supervisor.status import leave_scratch, supervisor_died
from lynceus.executors.supervisor.timeline import Timeline

_FULL_DISK_S = 0.5
_LOCK_POLL_S = 0.002
_FEWEST_POINTS = 64


def supervise(directory: str, environment: dict[str, str], secrets: list[str]) -> None:
    """Run the request of a directory, unless another supervisor does or has done so.

    This process becomes the guard of the run, and its child the supervisor. SIGTERM, to either of them, stops the job but neither of
    them: where a scheduler stops runs, the outcome must still be recorded.
    """
    lock = _acquire(directory)
    if lock is None:
        return
    request = files.read_json(os.path.join(directory, files.REQUEST))
    if request is None:
        return
    masking = Secrets(one.encode("utf-8", "surrogateescape") for one in secrets)
    guard = Guard(request)

    def run_it(told: int) -> None:
        try:
            _run(directory, request, environment, masking, guard.timeline, lock, told)
        except BaseException as error:
            if not guard.timeline.began and isinstance(error, OSError) and error.errno in files.DISK_FULL:
                why = not_started(f"the disk of the run directory {directory} is full")
                _write_outcome(directory, lock, {**why, "node": os.uname().nodename}, guard.timeline)
                return
            sys.stderr.write(masking.masked_text(traceback.format_exc()))
            sys.stderr.flush()
            raise

    code = guard.watch(run_it)
    if code != 0 and not os.path.exists(os.path.join(directory, files.OUTCOME)):
        outcome = supervisor_died(directory, request, timeline=guard.timeline, code=code)
        _write_outcome(directory, lock, outcome, guard.timeline)
    if files.is_same(os.path.join(directory, files.LOCK), lock):
        leave_scratch(directory, request)  # after the outcome is safe, whatever the job left there


def _run(
    directory: str,
    request: dict[str, Any],
    environment: dict[str, str],
    secrets: Secrets,
    timeline: Timeline,
    lock: int,
    told: int,
) -> None:
    """In the supervisor's process: run the job and record its outcome."""
    path = os.path.join
    paths = {"LYNCEUS_PARAMS": path(directory, files.PARAMS), "LYNCEUS_RESULT": path(directory, files.RESULT)}
    if request.get("scratch"):
        paths["LYNCEUS_SCRATCH"] = path(directory, scratch.NAME)
    inherited = {name: text for name, text in environment.items() if name != "LYNCEUS_SCRATCH"}
    run = Run(directory, request, {**inherited, **paths}, secrets, timeline, lock)
    for which in SIGNALS:
        signal.signal(which, run.stop_on_signal)
    outcome = run.execute(told)
    if outcome is not None:
        _write_outcome(directory, lock, outcome, timeline)


def _write_outcome(directory: str, lock: int, outcome: OutcomeRecord, timeline: Timeline) -> None:
    """Write the outcome into its reserved space. If there is none or it is too small, shorten the trace, then wait for a full disk.

    Gives up only if the directory was removed or replaced: then no reader is left.
    """
    path, room = os.path.join(directory, files.OUTCOME), os.path.join(directory, files.ROOM)
    while files.is_same(os.path.join(directory, files.LOCK), lock):
        timeline.beat = time.monotonic()
        try:
            files.set_aside(room)
            if os.path.exists(room):
                files.write_reserved(room, path, outcome)
            else:
                files.write_once(path, outcome)
            files.sync(path)
            return
        except OSError:
            if len(outcome["trace"]) > _FEWEST_POINTS:
                outcome["trace"] = outcome["trace"][::2]
            else:
                time.sleep(_FULL_DISK_S)


def _acquire(directory: str) -> int | None:
    """Lock the run for the lifetime of this process and return the descriptor; None if the run has been started.

    Processes that read the status hold the lock for a moment, too: a lock that is taken does not mean that there is a supervisor.
    """
    lock = os.open(os.path.join(directory, files.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        if any(os.path.exists(os.path.join(directory, name)) for name in (files.STARTED, files.OUTCOME)):
            os.close(lock)
            return None
        if held:
            return lock
        time.sleep(_LOCK_POLL_S)
