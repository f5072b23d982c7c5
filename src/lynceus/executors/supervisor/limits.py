"""CPU and memory limits: control groups (version 1 or 2) where we may create them, otherwise CPU affinity and rlimits."""

from __future__ import annotations

import errno
import os
import resource
import time

_ROOT = "/sys/fs/cgroup"
_PERIOD_US = 100_000
_REMOVALS, _REMOVAL_S = 50, 0.005
"""How often and at what intervals it is tried to remove a group whose processes were killed."""


class Limits:
    """The limits of one run. The supervisor creates them, the job enters them, and the supervisor removes them at the end."""

    def __init__(self, run: str, cpus: float | None, memory_bytes: int | None, offset: int = 0) -> None:
        self.cpus, self.memory_bytes = cpus, memory_bytes
        self._cpu_offset = offset
        """Parallel runs start at different CPUs."""
        self.groups: list[str] = []
        """Directories of the control groups of this run."""
        self._oom_file: str | None = None
        self.memory_by_rlimit = False
        name = f"lynceus-{run}"
        own = _own_groups()
        limited = cpus is not None or memory_bytes is not None
        kill_group = (_create(own.get("limits"), name) if limited else None) or _create(own.get(""), name)
        if kill_group is not None:
            self.groups.append(kill_group)
        if cpus is not None:
            self._limit_cpu(own, name, kill_group, cpus)
        if memory_bytes is not None and not self._limit_memory(own, name, kill_group, memory_bytes):
            self.memory_by_rlimit = True
        self._oom_kills = self._count_oom_kills()

    def _limit_cpu(self, own: dict[str, str], name: str, unified: str | None, cpus: float) -> None:
        quota = max(int(cpus * _PERIOD_US), 1000)
        if unified is not None and _write(f"{unified}/cpu.max", f"{quota} {_PERIOD_US}"):
            return
        group = _create(own.get("cpu"), name)
        if group is not None:
            self.groups.append(group)
            _write(f"{group}/cpu.cfs_period_us", str(_PERIOD_US))
            _write(f"{group}/cpu.cfs_quota_us", str(quota))

    def _limit_memory(self, own: dict[str, str], name: str, unified: str | None, limit: int) -> bool:
        if unified is not None and _write(f"{unified}/memory.max", str(limit)):
            _write(f"{unified}/memory.swap.max", "0")
            self._oom_file = f"{unified}/memory.events"
            return True
        group = _create(own.get("memory"), name)
        if group is None:
            return False
        self.groups.append(group)
        if not _write(f"{group}/memory.limit_in_bytes", str(limit)):
            return False
        _write(f"{group}/memory.memsw.limit_in_bytes", str(limit))
        self._oom_file = f"{group}/memory.oom_control"
        return True

    def enter(self) -> None:
        """Called in the job's process before it becomes the job."""
        for group in self.groups:
            _write(f"{group}/cgroup.procs", str(os.getpid()))
        if self.cpus is not None:
            # Programs that count the CPUs must see as many as the run has.
            mine = sorted(os.sched_getaffinity(0))
            count = min(max(int(self.cpus + 0.999), 1), len(mine))
            start = self._cpu_offset * count % len(mine)
            os.sched_setaffinity(0, {(mine + mine)[start + i] for i in range(count)})
        if self.memory_by_rlimit and self.memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory_bytes, self.memory_bytes))

    def out_of_memory(self, killed: bool) -> bool:
        """Whether the kernel killed a process because memory ran out: in our group, or, if the job was killed, anywhere."""
        group, machine = self._count_oom_kills()
        return group > self._oom_kills[0] or (killed and machine > self._oom_kills[1])

    def _count_oom_kills(self) -> tuple[int, int]:
        return _counter(self._oom_file, "oom_kill"), _counter("/proc/vmstat", "oom_kill")

    def remove(self) -> None:
        """Remove the groups, which are empty by now."""
        remove_groups(self.groups)


def remove_groups(groups: list[str]) -> None:
    """Kill what runs in control groups and remove their directories."""
    for group in groups:
        _write(f"{group}/cgroup.kill", "1")
        for _ in range(_REMOVALS):
            try:
                os.rmdir(group)
            except OSError as error:
                if error.errno == errno.EBUSY:  # what was killed is still ending
                    time.sleep(_REMOVAL_S)
                    continue
            break


def groups_of(run: str) -> list[str]:
    """The control groups of a run, as far as they are beside our own."""
    return [
        group for group in (f"{parent}/lynceus-{run}" for parent in set(_own_groups().values())) if os.path.isdir(group)
    ]


def processes_in(groups: list[str]) -> set[int]:
    """Processes in control groups."""
    found: set[int] = set()
    for group in groups:
        try:
            with open(f"{group}/cgroup.procs", encoding="utf-8") as file:
                found |= {int(line) for line in file}
        except (OSError, ValueError):
            continue
    return found


def _own_groups() -> dict[str, str]:
    """The directory in which we may create groups, by controller. The unified hierarchy has the empty key, and the part of it that has CPU
    and memory controllers the key `limits`."""
    found: dict[str, str] = {}
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            mounts = [_ROOT, f"{_ROOT}/unified"]
            mount = next((one for one in mounts if os.path.exists(f"{one}/cgroup.controllers")), None)
        else:
            mount = next((f"{_ROOT}/{one}" for one in (controllers, *controllers.split(","))
                          if os.path.isdir(f"{_ROOT}/{one}")), None)  # fmt: skip
        if mount is None:
            continue
        inside = mount + path.rstrip("/")
        inside = inside if os.path.isdir(inside) else mount
        for controller in controllers.split(","):
            found[controller] = inside
        if not controllers and (limited := with_controllers(inside, mount)) is not None:
            found["limits"] = limited
    return found


def with_controllers(inside: str, mount: str) -> str | None:
    """The nearest group of the unified hierarchy, from ours upwards, whose children can limit CPU and memory."""
    group = inside
    while group.startswith(mount):
        try:
            with open(f"{group}/cgroup.subtree_control", encoding="utf-8") as file:
                if {"cpu", "memory"} <= set(file.read().split()):
                    return group
        except OSError:
            return None
        group = os.path.dirname(group)
    return None


def _create(parent: str | None, name: str) -> str | None:
    if parent is None:
        return None
    group = f"{parent}/{name}"
    try:
        os.mkdir(group)
    except OSError:
        return None
    return group


def _write(path: str, text: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _counter(path: str | None, name: str) -> int:
    if path is None:
        return 0
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    except (OSError, ValueError):
        return 0
    return 0
