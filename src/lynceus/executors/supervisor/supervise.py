"""Supervising a run: one supervisor and one outcome, however many are started."""

from __future__ import annotations

import fcntl
import os
import signal
import time

from lynceus.executors.supervisor import files, process_tree
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.run import Run

_FULL_DISK_S = 0.5
_LOCK_POLL_S = 0.002
_FEWEST_POINTS = 64


def supervise(
    directory: str, environment: dict[str, str], secrets: list[str], *, survives_signals: bool = False
) -> None:
    """Run the request of a directory, unless another supervisor does or has done so.

    With `survives_signals`, SIGTERM stops the job but not the supervisor: where a scheduler stops runs, the supervisor must stay alive
    to record the outcome.
    """
    lock = _acquire(directory)
    if lock is None:
        return None
    path = os.path.join
    request = files.read_json(path(directory, files.REQUEST))
    if request is None:
        return None
    process_tree.adopt_orphans()
    paths = {"LYNCEUS_PARAMS": path(directory, files.PARAMS), "LYNCEUS_RESULT": path(directory, files.RESULT)}
    masked = [one.encode("utf-8", "surrogateescape") for one in secrets]
    run = Run(directory, request, {**environment, **paths}, masked)
    if survives_signals:
        for which in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(which, run.stop_on_signal)
    outcome = run.execute()
    return None if outcome is None else _write_outcome(directory, lock, outcome)


def _write_outcome(directory: str, lock: int, outcome: OutcomeRecord) -> None:
    """Write the outcome into its reserved space. If there is none or it is too small, shorten the trace, then wait for a full disk.

    Gives up only if the directory was deleted, and our lock in it: then no reader is left.
    """
    path = os.path.join(directory, files.OUTCOME)
    while True:
        try:
            if os.path.exists(os.path.join(directory, files.ROOM)):
                files.write_reserved(os.path.join(directory, files.ROOM), path, outcome)
            else:
                files.write_once(path, outcome)
            return files.sync(path)
        except OSError:
            if not os.fstat(lock).st_nlink:
                return None
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
