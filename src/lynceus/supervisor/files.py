"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from typing import Any

REQUEST, LOCK, STARTED, ALIVE = "request.json", "lock", "started.json", "alive"
PARAMS, RESULT, CANCEL, OUTCOME = "params.json", "result.jsonl", "cancel", "outcome.json"
STDOUT, STDERR, LOG, ROOM = "stdout", "stderr", "supervisor.log", "outcome.room"


def write_whole(path: str, record: dict[str, Any]) -> None:
    """Write JSON so that a reader, or the death of the writer, meets either nothing or all of it."""
    passing = f"{path}.{os.getpid()}.new"
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        data = json.dumps(record).encode()
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
    os.rename(passing, path)


def write_first(path: str, record: dict[str, Any]) -> bool:
    """Like `write_whole`, but only the first writer succeeds, also between machines that share a disk without locks."""
    passing = f"{path}.{os.getpid()}.{time.monotonic_ns()}.new"
    write_whole(passing, record)
    return _name_first(passing, path)


def _name_first(passing: str, path: str) -> bool:
    """Give a file its name unless the name is taken; the passing name is gone either way."""
    try:
        os.link(passing, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        if os.path.exists(path):  # a disk without links: the lock of the run must do
            return False
        os.rename(passing, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(passing)
    return True


def reserve(path: str, size: int) -> None:
    """Keep room for a file that must be written later, whatever others do to the disk until then."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def write_reserved(room: str, path: str, record: dict[str, Any]) -> None:
    """Write JSON into reserved room, then give it its name unless somebody was first."""
    descriptor = os.open(room, os.O_WRONLY)
    try:
        data = json.dumps(record).encode()
        size = len(data)
        while data:
            data = data[os.write(descriptor, data) :]
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)
    _name_first(room, path)


def make_durable(path: str) -> None:
    """Let a file and its name survive a power cut. It takes the disk milliseconds, so it is done while others go on."""
    for one in (path, os.path.dirname(path)):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def boot() -> str:
    """The present boot of this machine: what ran in another one runs no more."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_whole(path: str) -> dict[str, Any] | None:
    """What `write_whole` wrote; nothing when it is not there, or was ruined by a power cut."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None
