"""Finding and ending all processes of a run, also those that changed their group, their session or their parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

RUN_VARIABLE = "LYNCEUS_RUN"
"""Every process of a run inherits this variable, so that it can be found when its supervisor is gone."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Let descendants whose parents die become our children, however often they fork."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Let the kernel end us when our parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def descendants(root: int) -> set[int]:
    """All living processes below `root`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split()
                if state not in (b"Z", b"X"):
                    children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    ahead = [root]
    while ahead:
        for child in children.get(ahead.pop(), ()):
            if child not in found:
                found.add(child)
                ahead.append(child)
    return found


def of_run(run: str) -> set[int]:
    """All processes that carry the name of a run in their environment, whoever is their parent."""
    mark = f"{RUN_VARIABLE}={run}".encode()
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.add(int(name))
    return found


def signal_all(processes: set[int], which: int) -> None:
    """Send a signal; those that are gone already are no matter."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, which)


def reap() -> bool:
    """Bury dead children; true while living ones are left."""
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if process == 0:
            return True


def end_descendants(patience_s: float = 10.0) -> bool:
    """Kill everything below us; true when nothing is left. Only a process stuck in the kernel can survive."""
    until = time.monotonic() + patience_s
    while reap():
        signal_all(descendants(os.getpid()), signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def end_run(run: str, also: set[int], patience_s: float = 10.0) -> bool:
    """Kill every process of a run whose supervisor is gone; true when nothing is left."""
    until = time.monotonic() + patience_s
    while left := of_run(run) | {one for one in also if os.path.exists(f"/proc/{one}") and not _dead(one)}:
        signal_all(left, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _dead(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True
