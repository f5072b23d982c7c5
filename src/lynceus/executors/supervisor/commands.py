"""The commands for a run directory on a node: `run`, `state`, `cancel`, `end`. They are shipped as a single file, see `bundle`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any

from lynceus.executors.supervisor import files, process_tree
from lynceus.executors.supervisor.ending import end_by_force
from lynceus.executors.supervisor.outcome_record import failed
from lynceus.executors.supervisor.status import last_heartbeat_s, read_outcome, settled_outcome
from lynceus.executors.supervisor.supervise import supervise

EXIT_NO_DIRECTORY, EXIT_DISK_FULL, EXIT_USAGE = 73, 74, 64
_MIN_FREE_BYTES = 128 * 1024
_LAST_WORDS_S, _LAST_WORDS_POLL_S = 5.0, 0.02
"""How long `state` waits for a supervisor that is ending, and how often it looks."""
_USAGE = "usage: runner.pyz run DIRECTORY [FILE|-] | state DIRECTORY | cancel DIRECTORY | end DIRECTORY"


def main(arguments: list[str]) -> int:
    """Execute one command; returns the exit code."""
    if len(arguments) not in (2, 3) or arguments[0] not in ("run", "state", "cancel", "end"):
        _say(_USAGE)
        return EXIT_USAGE
    command, directory = arguments[0], os.path.abspath(os.path.expanduser(arguments[1]))
    if command == "state":
        sys.stdout.write(json.dumps(state(directory)) + "\n")
        return 0
    if not os.path.exists(os.path.join(directory, files.REQUEST)):
        _say(f"{os.uname().nodename} cannot see the run directory {directory}")
        return EXIT_NO_DIRECTORY
    if command == "run":
        try:
            return run(directory, arguments[2] if len(arguments) == 3 else None)
        except OSError as error:
            if error.errno not in files.DISK_FULL:
                raise
            _say(f"the disk of the run directory {directory} is full")
            return EXIT_DISK_FULL
    if command == "cancel":
        os.close(files.open_regular(os.path.join(directory, files.CANCEL), os.O_WRONLY | os.O_CREAT))
        return 0
    end_by_force(directory)
    return 0


def run(directory: str, source: str | None) -> int:
    """Supervise the run until it ends. The environment is read from a file, which is then removed, or from standard input (`-`)."""
    has_begun = any(os.path.exists(os.path.join(directory, name)) for name in (files.STARTED, files.OUTCOME))
    try:
        if not has_begun:
            files.reserve(os.path.join(directory, files.ROOM), _MIN_FREE_BYTES)
    except OSError as error:
        if error.errno in files.DISK_FULL:
            raise
    try:
        given = _read_environment(source)
    except (OSError, ValueError) as error:
        if not os.path.exists(os.path.join(directory, files.STARTED)):
            files.write_once(
                os.path.join(directory, files.OUTCOME), failed(f"its environment could not be read: {error}")
            )
        return 0
    base = dict(os.environ) if given.get("inherit", True) else {}
    environment = {**base, **given.get("environment", {})}
    for name in given.get("without", []):
        environment.pop(name, None)
    supervise(directory, environment, list(given.get("secrets", [])))
    return 0


def _say(line: str) -> None:
    """Print a line for people. The exit code says the same: standard error may be a file on a full disk."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode("utf-8", "backslashreplace"))


def _read_environment(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    if source == "-":
        found = json.loads(sys.stdin.buffer.read())
    else:
        with open(source, "rb") as file:
            found = json.loads(file.read())
        os.unlink(source)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def state(directory: str) -> dict[str, Any]:
    """The state of the run on this machine. If its supervisor is dead, its processes are killed and the run is settled."""
    request = files.read_json(os.path.join(directory, files.REQUEST))
    if request is None:
        return {"state": "gone", "outcome": None, "seconds": 0.0}
    started = files.read_json(os.path.join(directory, files.STARTED))
    until = time.monotonic() + _LAST_WORDS_S
    while True:
        outcome = read_outcome(directory) or settled_outcome(directory, request, lambda: True)
        guarded = started is None or not process_tree.is_dead(started.get("guard", os.getpid()))
        if outcome is not None or guarded or time.monotonic() > until:
            break
        time.sleep(_LAST_WORDS_POLL_S)  # a supervisor without its guard ends the run and records it
    seconds = 0.0 if started is None else last_heartbeat_s(directory, started)
    word = "ended" if outcome is not None else "prepared" if started is None else "running"
    return {"state": word, "outcome": outcome, "seconds": seconds}
