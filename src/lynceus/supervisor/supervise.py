"""Taking charge of a run: one supervisor, one outcome, whoever else tries."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from typing import Any

from lynceus.supervisor import files, tree
from lynceus.supervisor.run import Run

_FULL_DISK_S = 0.5
_LOCK_POLL_S = 0.002
_FEWEST_POINTS = 64


def supervise(
    directory: str, environment: dict[str, str], secrets: list[str], *, outlives_signals: bool = False
) -> None:
    """Run the request of a directory, unless somebody does so or has done so.

    With `outlives_signals` SIGTERM ends the job, not us: where a scheduler ends runs, it must not end the one who tells of them.
    """
    lock = _take_charge(directory)
    if lock is None:
        return None
    path = os.path.join
    request = files.read_whole(path(directory, files.REQUEST))
    if request is None:
        return None
    tree.adopt_orphans()
    paths = {"LYNCEUS_PARAMS": path(directory, files.PARAMS), "LYNCEUS_RESULT": path(directory, files.RESULT)}
    hidden = [one.encode("utf-8", "surrogateescape") for one in secrets]
    run = Run(directory, request, {**environment, **paths}, hidden)
    if outlives_signals:
        for which in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(which, run.told_to_end)
    outcome = run.whole()
    return None if outcome is None else _write_outcome(directory, lock, outcome)


def _write_outcome(directory: str, lock: int, outcome: dict[str, Any]) -> None:
    """What was paid for must not be lost: room was kept for it; where that failed or is not enough, wait for a full disk to have some.

    Only where somebody removed the directory, our lock in it included, nobody will ever ask.
    """
    path = os.path.join(directory, files.OUTCOME)
    while True:
        try:
            if os.path.exists(os.path.join(directory, files.ROOM)):
                files.write_reserved(os.path.join(directory, files.ROOM), path, outcome)
            else:
                files.write_first(path, outcome)
            return files.make_durable(path)
        except OSError:
            if not os.fstat(lock).st_nlink:
                return None
            if len(outcome["trace"]) > _FEWEST_POINTS:
                outcome["trace"] = outcome["trace"][::2]
            else:
                time.sleep(_FULL_DISK_S)


def _take_charge(directory: str) -> int | None:
    """Hold the run's lock for as long as we live, and return it; nothing when somebody runs it or has run it.

    Whoever asks how the run stands holds the lock for a moment, too: a lock that is taken does not mean that somebody is in charge.
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
