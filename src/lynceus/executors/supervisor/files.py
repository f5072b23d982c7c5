"""JSON files that are either complete or absent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Mapping
from typing import Any

REQUEST, LOCK, STARTED, ALIVE = "request.json", "lock", "started.json", "alive"
PARAMS, RESULT, CANCEL, OUTCOME = "params.json", "result.jsonl", "cancel", "outcome.json"
MARKER = ".lynceus-run"
"""In every run directory that Lynceus made, with the run that it is for: nothing else is ever removed."""
STDOUT, STDERR, LOG, ROOM = "stdout", "stderr", "supervisor.log", "outcome.room"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers of a disk on which nothing more can be written."""


def open_regular(path: str, how: int) -> int:
    """Open a file; OSError if it is not one. A job can put a pipe in its place, which would block, or a link to something else."""
    descriptor = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "something else has the name of its file")
    return descriptor


def read_regular(path: str, most_bytes: int = 1 << 28) -> bytes | None:
    """The end of a file, at most `most_bytes`; None if there is none, or something else has its name."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENXIO):
            return None
        raise
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(size - most_bytes, 0))
        return file.read(most_bytes)


def write_atomically(path: str, record: Mapping[str, Any]) -> None:
    """Write JSON so that readers find all of it or none, also if the writer is killed."""
    temporary = f"{path}.{os.getpid()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            data = json.dumps(record).encode()
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_once(path: str, record: Mapping[str, Any]) -> bool:
    """Like `write_atomically`, but only the first writer succeeds, also between machines that share a disk without locks."""
    temporary = f"{path}.{os.getpid()}.{time.monotonic_ns()}.new"
    write_atomically(temporary, record)
    return _rename_once(temporary, path)


def _rename_once(temporary: str, path: str) -> bool:
    """Rename a file unless the new name is taken; the temporary name is gone either way."""
    set_aside(path)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, *DISK_FULL):
            raise
        if os.path.exists(path):  # no hard links, or no room for one: rely on the lock of the run
            return False
        os.rename(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return True


def set_aside(path: str) -> None:
    """Rename what is not a file but has the name of one."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.rename(path, f"{path}.{time.monotonic_ns()}.odd")


def reserve(path: str, size: int) -> None:
    """Reserve disk space for a file that will be written later, in case the disk fills up until then. All of it, or none."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def write_reserved(room: str, path: str, record: Mapping[str, Any]) -> None:
    """Write JSON into a reserved file, then rename it unless another writer was first."""
    descriptor = open_regular(room, os.O_WRONLY)
    try:
        data = json.dumps(record).encode()
        size = len(data)
        while data:
            data = data[os.write(descriptor, data) :]
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)
    _rename_once(room, path)


def sync(path: str) -> None:
    """Flush a file and its directory entry to disk, so that they survive a power failure. Takes milliseconds."""
    for one in (path, os.path.dirname(path)):
        descriptor = os.open(one, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_same(path: str, descriptor: int) -> bool:
    """Whether an open file still has this name; true if the disk does not say."""
    try:
        found, ours = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)


def boot_id() -> str:
    """Identifies the current boot of this machine: processes of another boot no longer run. Empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_json(path: str) -> dict[str, Any] | None:
    """The JSON object in a file; None if the file is missing, is not a regular file, or was damaged by a power failure."""
    data = read_regular(path)
    try:
        found = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
