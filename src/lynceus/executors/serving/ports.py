"""A port for the server of a run that no other run on this machine takes, however long the server needs before it listens."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile

from lynceus.executors.serving.errors import TRY_AGAIN, MeasurementError

_FIRST, _FEWEST = 20_000, 1_000
_TRIES = 200


class Reservation:
    """A port, and the lock that keeps other runs away from it as long as this process lives."""

    def __init__(self, port: int, lock: int | None) -> None:
        self.port, self._lock = port, lock

    def release(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def reserve(fixed: int | None = None) -> Reservation:
    """The `fixed` port, or a free one outside the range from which the kernel takes ports for outgoing connections."""
    if fixed is not None:
        lock = _locked(fixed)
        if lock is not None and is_free(fixed):
            return Reservation(fixed, lock)
        raise MeasurementError(
            f"port {fixed} is in use before the server starts; end what listens there, or let the server listen on ${{port}}",
            TRY_AGAIN,
        )
    first, last = _range()
    for _ in range(_TRIES):
        port = random.SystemRandom().randrange(first, last)
        lock = _locked(port)
        if lock is None:
            continue
        if is_free(port):
            return Reservation(port, lock)
        os.close(lock)
    raise MeasurementError(f"no free port was found between {first} and {last}", TRY_AGAIN)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port, on every address of this machine."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            listener = socket.socket(family, socket.SOCK_STREAM)
        except OSError:  # no IPv6 here
            continue
        with contextlib.closing(listener):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                listener.bind((address, port))
                listener.listen(1)
            except OSError:
                if family == socket.AF_INET6 and not _has_ipv6():
                    continue
                return False
    return True


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), contextlib.closing(socket.socket(socket.AF_INET6)) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def _locked(port: int) -> int | None:
    """A locked file for this port; None if another run holds it. Where such files cannot be made, nothing is locked."""
    folder = os.path.join(tempfile.gettempdir(), f"lynceus-ports-{os.getuid()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(folder, str(port)), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _range() -> tuple[int, int]:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            lowest = int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        lowest = 32_768
    return (_FIRST, lowest) if lowest >= _FIRST + _FEWEST else (_FIRST // 2, _FIRST)
