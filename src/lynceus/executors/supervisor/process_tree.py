"""Finding and killing all processes of a run, including those that changed their process group, session or parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

RUN_VARIABLE = "LYNCEUS_RUN"
"""Every process of a run inherits this variable, so that it can be found after its supervisor died."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make descendants whose parents die our own children, however often they fork."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
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
    to_visit = [root]
    while to_visit:
        for child in children.get(to_visit.pop(), ()):
            if child not in found:
                found.add(child)
                to_visit.append(child)
    return found


def processes_of(run: str) -> set[int]:
    """All processes that have the id of a run in their environment, whatever their parent."""
    entry = f"{RUN_VARIABLE}={run}".encode()
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if entry in file.read().split(b"\0"):
                    found.add(int(name))
    return found


def signal_all(processes: set[int], which: int) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, which)


def reap() -> bool:
    """Reap dead children; true while living ones are left."""
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if process == 0:
            return True


def kill_descendants(timeout_s: float = 10.0) -> bool:
    """Kill everything below this process; true if nothing is left. Only a process stuck in the kernel can survive."""
    until = time.monotonic() + timeout_s
    while reap():
        signal_all(descendants(os.getpid()), signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def kill_run(run: str, also: set[int], timeout_s: float = 10.0) -> bool:
    """Kill every process of a run, and those in `also`; true if nothing is left."""
    until = time.monotonic() + timeout_s
    while left := processes_of(run) | {one for one in also if os.path.exists(f"/proc/{one}") and not _is_dead(one)}:
        signal_all(left, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _is_dead(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True
