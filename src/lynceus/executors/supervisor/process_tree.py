"""Finding and killing all processes of a run, including those that changed their process group, session or parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable

RUN_VARIABLE = "LYNCEUS_RUN"
"""Every process of a run inherits this variable, so that it can be found after its supervisor died."""

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_DELETED = " (deleted)"
"""What the kernel appends to the path of such a file."""
_OOM_SCORE_RISE = 100
"""A tenth of the memory of the machine, on the scale by which the kernel chooses what to kill."""
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make descendants whose parents die our own children, however often they fork."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def wake_when_parent_dies() -> None:
    """Have the kernel send SIGTERM to this process when its parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def set_name(name: bytes) -> None:
    """Name this process, as `ps` shows it: at most 15 letters."""
    _libc.prctl(_PR_SET_NAME, name, 0, 0, 0)


def prefer_for_oom_kill() -> None:
    """If the machine runs out of memory, the kernel should kill this process rather than those that watch it."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/oom_score_adj", encoding="utf-8") as file:
            score = int(file.read())
        with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
            file.write(str(min(score + _OOM_SCORE_RISE, 1000)))


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
    return processes_with(f"{RUN_VARIABLE}={run}")


def processes_with(entry: str) -> set[int]:
    """All processes of ours that have this `NAME=value` in their environment."""
    wanted = os.fsencode(entry)
    return {process for process in all_processes() if wanted in environment_of(process)}


def environment_of(process: int) -> list[bytes]:
    """The environment that a process was started with, one `NAME=value` each; empty if it ended or is not ours."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def all_processes() -> list[int]:
    """The numbers of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def named(names: Iterable[bytes]) -> set[int]:
    """All processes that were given one of these names by `set_name`."""
    found: set[int] = set()
    for process in all_processes():
        with contextlib.suppress(OSError), open(f"/proc/{process}/comm", "rb") as file:
            if file.read().strip() in names:
                found.add(process)
    return found


def open_files(process: int) -> set[str]:
    """The paths of the files that a process has open, also of files that were deleted since."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                path = os.readlink(f"/proc/{process}/fd/{descriptor}")
                found.add(path[: -len(_DELETED)] if path.endswith(_DELETED) else path)
    return found


def age_s(process: int) -> float | None:
    """Seconds since a process was started; None if it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)


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


def kill_all(find: Callable[[], set[int]], timeout_s: float = 10.0) -> bool:
    """Kill the processes that `find` returns until it finds none; true if nothing is left."""
    until = time.monotonic() + timeout_s
    while left := {one for one in find() if not is_dead(one)}:
        signal_all(left, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def is_dead(process: int) -> bool:
    """Whether a process has ended; its parent may not have noticed."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def open_pidfd(process: int) -> set[int]:
    """A descriptor that becomes readable when a process ends; an empty set on old kernels and Pythons, where we have to poll."""
    try:
        return {os.pidfd_open(process)}
    except (AttributeError, OSError):
        return set()
