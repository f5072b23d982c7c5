"""The status of a run, seen from outside its supervisor but on the same machine. If the supervisor is dead, its run is settled here."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from lynceus.executors.supervisor import files, process_tree, scratch
from lynceus.executors.supervisor.ending import end_processes, job_processes
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, timed_out
from lynceus.executors.supervisor.output import read_output
from lynceus.executors.supervisor.timeline import Timeline
from lynceus.trial.text import clean_line


def read_outcome(directory: str) -> OutcomeRecord | None:
    """How the run ended; None if it has not been recorded."""
    return cast("OutcomeRecord | None", files.read_json(os.path.join(directory, files.OUTCOME)))


def is_supervised(directory: str) -> bool:
    """Whether the run has a living supervisor; for a moment also true while another process looks."""
    try:
        lock = os.open(os.path.join(directory, files.LOCK), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def settled_outcome(
    directory: str, request: Mapping[str, Any], is_starting: Callable[[], bool]
) -> OutcomeRecord | None:
    """How the run ended; None while its supervisor lives, or while the supervisor `is_starting`."""
    lock = os.open(os.path.join(directory, files.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        record = read_outcome(directory)
        if record is not None:
            return record
        if not os.path.exists(os.path.join(directory, files.STARTED)) and is_starting():
            return None
        record = supervisor_died(directory, request)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, files.ROOM))  # on a full disk, this is the room for the outcome
        files.write_atomically(os.path.join(directory, files.OUTCOME), record)
        leave_scratch(directory, request)
        return record
    finally:
        os.close(lock)


def leave_scratch(directory: str, request: Mapping[str, Any]) -> None:
    """Remove the scratch directory of a run that has ended, or keep it under a name that says whether it finished."""
    record = read_outcome(directory)
    scratch.leave(directory, request, finished=record is not None and record["end"] == "finished")


def last_heartbeat_s(directory: str, started: Mapping[str, Any]) -> float:
    """Seconds that a run had lasted at its supervisor's last heartbeat, by the supervisor's own clock."""
    path = os.path.join(directory, files.ALIVE)
    try:
        return float(files.read_regular(path, 64) or b"")
    except (OSError, ValueError):
        pass
    try:
        return max(os.path.getmtime(path) - float(started["began_s"]), 0.0)
    except OSError:
        return 0.0


def supervisor_died(
    directory: str, request: Mapping[str, Any], *, timeline: Timeline | None = None, code: int | None = None
) -> OutcomeRecord:
    """Kill what a dead supervisor left running, and say how the run ended.

    Its guard calls this with what it knows. Anyone else relies on the processes that still ran, or else on the last heartbeat.
    """
    started = files.read_json(os.path.join(directory, files.STARTED))
    groups = [] if started is None else started["groups"]
    ran = bool(job_processes(directory, request["run"], groups))
    now = time.monotonic()
    all_killed = process_tree.kill_descendants() if timeline is not None else True
    all_killed &= end_processes(directory, request["run"], groups)
    gone = time.monotonic()
    seconds, stopping_s = 0.0, 0.0
    if timeline is not None and timeline.began:
        told = timeline.stopped or timeline.ended or now
        seconds, stopping_s = told - timeline.began, gone - told if timeline.stopped else 0.0
    elif started is not None:
        seconds = last_heartbeat_s(directory, started)
        if ran and started.get("boot") == files.boot_id():
            seconds = max(now - float(started["monotonic_s"]), seconds)
    record = _record(directory, request, started=started is not None, seconds=seconds, code=code)
    if stopping_s:
        record["stopping_s"] = stopping_s
    if not all_killed:
        record["detail"] += "; one of its processes could not be killed"
    return record


def _record(
    directory: str, request: Mapping[str, Any], *, started: bool, seconds: float, code: int | None
) -> OutcomeRecord:
    """How a run ended whose supervisor, if it had `started`, ended with an exit code (minus a signal; None if unknown)."""
    timeout_s = request["cap_s"]
    if os.path.exists(os.path.join(directory, files.CANCEL)):
        return failed(f"cancelled after {seconds:.1f} s, by force", reason="user", seconds=seconds)
    if timeout_s is not None and seconds >= timeout_s:
        late_s = seconds - timeout_s
        return timed_out(
            seconds, f"its supervisor died; it ended {late_s:.1f} s after its timeout, its reports are lost"
        )
    if started and not (code is not None and code > 0):
        until = "last heartbeat" if code is None else "end"
        detail = f"the supervisor died (killed, or the machine went down); charged up to its {until}"
        return {**failed(detail, seconds=seconds), "outside": True}
    detail = "the supervisor failed" if started else "the supervisor could not be started, or the machine was rebooted"
    log = read_output(os.path.join(directory, files.LOG)).decode("utf-8", "replace").strip().splitlines()
    return failed(clean_line(f"{detail}: {log[-1]}" if log else detail), seconds=seconds)
