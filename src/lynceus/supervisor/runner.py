"""What a node is asked to do with a run directory, one word each: `run`, `state`, `cancel`, `end`. Shipped as one file, see `bundle`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from typing import Any

from lynceus.supervisor import files, limits, tree
from lynceus.supervisor.look import last_sign_s, look
from lynceus.supervisor.supervise import supervise

EXIT_UNSEEN, EXIT_FULL, EXIT_USAGE = 73, 74, 64
"""The directory cannot be seen, its disk has no room for an outcome, nobody knows what was wanted."""
_LEAST_ROOM = 128 * 1024
_USAGE = "usage: runner.pyz run DIRECTORY [FILE|-] | state DIRECTORY | cancel DIRECTORY | end DIRECTORY"


def main(arguments: list[str]) -> int:
    """Do one of the four; returns the exit code."""
    if len(arguments) not in (2, 3) or arguments[0] not in ("run", "state", "cancel", "end"):
        sys.stderr.write(_USAGE + "\n")
        return EXIT_USAGE
    what, directory = arguments[0], os.path.abspath(os.path.expanduser(arguments[1]))
    if what == "state":
        sys.stdout.write(json.dumps(state(directory)) + "\n")
        return 0
    if not os.path.exists(os.path.join(directory, files.REQUEST)):
        sys.stderr.write(f"{os.uname().nodename} does not see the run directory {directory}\n")
        return EXIT_UNSEEN
    if what == "run":
        return run(directory, arguments[2] if len(arguments) == 3 else None)
    if what == "cancel":
        os.close(os.open(os.path.join(directory, files.CANCEL), os.O_WRONLY | os.O_CREAT, 0o644))
        return 0
    end(directory)
    return 0


def run(directory: str, source: str | None) -> int:
    """Supervise the run until it ends; the environment comes from a file that is removed when read, or from standard input (`-`)."""
    try:
        files.reserve(os.path.join(directory, files.ROOM), _LEAST_ROOM)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            sys.stderr.write(f"the disk of the run directory {directory} is full\n")
            return EXIT_FULL
    try:
        given = _given(source)
    except (OSError, ValueError) as error:
        if not os.path.exists(os.path.join(directory, files.STARTED)):
            files.write_first(
                os.path.join(directory, files.OUTCOME), _never_started(f"its environment is gone: {error}")
            )
        return 0
    base = dict(os.environ) if given.get("inherit", True) else {}
    environment = {**base, **given.get("environment", {})}
    for name in given.get("without", []):
        environment.pop(name, None)
    supervise(directory, environment, list(given.get("secrets", [])), outlives_signals=True)
    return 0


def _given(source: str | None) -> dict[str, Any]:
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
    """How the run stands on this machine; a run whose supervisor is gone is settled now, and nothing of it is left alive."""
    request = files.read_whole(os.path.join(directory, files.REQUEST))
    if request is None:
        return {"state": "gone", "outcome": None, "seconds": 0.0}
    told = files.read_whole(os.path.join(directory, files.OUTCOME)) or look(directory, request, lambda: True)
    started = files.read_whole(os.path.join(directory, files.STARTED))
    seconds = 0.0 if started is None else last_sign_s(directory, started)
    word = "ended" if told is not None else "prepared" if started is None else "running"
    return {"state": word, "outcome": told, "seconds": seconds}


def end(directory: str) -> None:
    """Kill everything of the run at once, its supervisor too; `state` then settles it."""
    request = files.read_whole(os.path.join(directory, files.REQUEST)) or {}
    started = files.read_whole(os.path.join(directory, files.STARTED)) or {}
    groups = list(started.get("groups", ()))
    if "run" in request:
        tree.end_run(request["run"], limits.members(groups))
    with contextlib.suppress(OSError):
        limits.remove_groups(groups)


def _never_started(detail: str) -> dict[str, Any]:
    return {
        "v": 1,
        "end": "failed",
        "reason": "infra",
        "seconds": 0.0,
        "metrics": {},
        "trace": [],
        "detail": detail,
    }
