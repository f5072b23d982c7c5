"""Files that are whole or not there."""

from __future__ import annotations

import json
import os
from typing import Any

REQUEST, LOCK, STARTED, ALIVE = "request.json", "lock", "started.json", "alive"
PARAMS, RESULT, CANCEL, OUTCOME = "params.json", "result.jsonl", "cancel", "outcome.json"
STDOUT, STDERR, LOG = "stdout", "stderr", "supervisor.log"


def write_whole(path: str, record: dict[str, Any], *, survives: bool = True) -> None:
    """Write JSON so that a reader, or a crash, meets either nothing or all of it; it survives a power cut if it must."""
    passing = f"{path}.{os.getpid()}.new"
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        data = json.dumps(record).encode()
        while data:
            data = data[os.write(descriptor, data) :]
        if survives:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(passing, path)
    if not survives:
        return
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_whole(path: str) -> dict[str, Any] | None:
    """What `write_whole` wrote; nothing when it is not there."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    return found if isinstance(found, dict) else None
