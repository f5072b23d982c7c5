"""Ports for test servers that need to know their port before they start."""

import contextlib
import fcntl
import functools
import itertools
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_FIRST, _PER_PROCESS, _PROCESSES = 20_000, 500, 25
"""Below the range of ephemeral ports (32768 and up)."""


@functools.cache
def _block() -> tuple[Iterator[int], IO[str]]:
    """Ports that no other test process takes, not even while the server that uses them is down; and the lock that keeps them ours."""
    for number in range(_PROCESSES):
        lock = (Path(tempfile.gettempdir()) / f"lynceus-test-ports-{number}").open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        first = _FIRST + _PER_PROCESS * number
        return iter(itertools.cycle(range(first, first + _PER_PROCESS))), lock
    raise RuntimeError(f"{_PROCESSES} test processes use ports already; wait for one of them to end")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that are free and stay free."""
    ports, _ = _block()
    found: list[int] = []
    while len(found) < count:
        port = next(ports)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found
