"""The status of a run, seen from outside its supervisor but on the same machine. If the supervisor is dead, its run is settled here."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from lynceus.executors.supervisor import files, limits, process_tree
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed
from lynceus.executors.supervisor.output import read_output


def read_outcome(directory: str) -> OutcomeRecord | None:
    """How the run ended; None if it has not been recorded."""
    return cast("OutcomeRecord | None", files.read_json(os.path.join(directory, files.OUTCOME)))


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
        started = files.read_json(os.path.join(directory, files.STARTED))
        if started is None and is_starting():
            return None
        record = _supervisor_died(directory, request, started)
        files.write_atomically(os.path.join(directory, files.OUTCOME), record)
        return record
    finally:
        os.close(lock)


def last_heartbeat_s(directory: str, started: Mapping[str, Any]) -> float:
    """Seconds that a run had lasted at its supervisor's last heartbeat, by the supervisor's own clock."""
    path = os.path.join(directory, files.ALIVE)
    try:
        with open(path, encoding="ascii") as file:
            return float(file.read())
    except (OSError, ValueError):
        pass
    try:
        return max(os.path.getmtime(path) - float(started["began_s"]), 0.0)
    except OSError:
        return 0.0


def _supervisor_died(directory: str, request: Mapping[str, Any], started: Mapping[str, Any] | None) -> OutcomeRecord:
    """Kill what a dead supervisor left running; the run counts as ended at the last heartbeat."""
    groups = [] if started is None else started["groups"]
    all_killed = process_tree.kill_run(request["run"], limits.processes_in(groups))
    limits.remove_groups(groups)
    seconds, detail = 0.0, "the supervisor could not be started, or the machine was rebooted"
    if started is not None:
        seconds = last_heartbeat_s(directory, started)
        detail = "the supervisor died (killed, or the machine went down); charged up to its last heartbeat"
    else:
        log = read_output(os.path.join(directory, files.LOG)).decode("utf-8", "replace").strip().splitlines()
        detail += f": {log[-1]}" if log else ""
    if not all_killed:
        detail += "; one of its processes could not be killed"
    return failed(detail, seconds=seconds)
