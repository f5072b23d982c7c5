"""How a run stands, seen from outside its supervisor but on the same machine; one whose supervisor is gone is settled in its place."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from typing import Any

from lynceus.supervisor import files, limits, tree
from lynceus.supervisor.output import read_output


def look(directory: str, request: dict[str, Any], coming: Callable[[], bool]) -> dict[str, Any] | None:
    """How the run ended; nothing while its supervisor lives, or has not shown itself but is still `coming`."""
    lock = os.open(os.path.join(directory, files.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        told = files.read_whole(os.path.join(directory, files.OUTCOME))
        if told is not None:
            return told
        started = files.read_whole(os.path.join(directory, files.STARTED))
        if started is None and coming():
            return None
        told = _vanished(directory, request, started)
        files.write_whole(os.path.join(directory, files.OUTCOME), told)
        return told
    finally:
        os.close(lock)


def last_sign_s(directory: str, started: dict[str, Any]) -> float:
    """Seconds that a run had lasted when its supervisor was last seen, by the supervisor's own clock."""
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


def _vanished(directory: str, request: dict[str, Any], started: dict[str, Any] | None) -> dict[str, Any]:
    """The supervisor is gone without a word: end what it left, and take its last sign of life for the end."""
    groups = [] if started is None else started["groups"]
    cleared = tree.end_run(request["run"], limits.members(groups))
    limits.remove_groups(groups)
    seconds, detail = 0.0, "its supervisor could not be started, or the machine was restarted"
    if started is not None:
        seconds = last_sign_s(directory, started)
        detail = "its supervisor vanished (killed, or the machine went down); charged up to its last sign of life"
    else:
        log = read_output(os.path.join(directory, files.LOG)).decode("utf-8", "replace").strip().splitlines()
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
