"""What a run used of its machine: memory at its peak, processor time, and what it read from and wrote to disks.

The kernel counts processor time and disk blocks of every process that has ended and was waited for, which the supervisor does for all
processes of a run. Memory is sampled: the anonymous and shared memory of the run's control group where the kernel keeps it, otherwise the
resident memory of its processes. Pages of files are left out, because the kernel takes them back when memory is short.
"""

from __future__ import annotations

import os
import resource
import time

from lynceus.executors.supervisor import process_tree

_BLOCK_BYTES = 512
_SHARE, _LONGEST_S = 0.05, 1.0
"""The share of the time that looking at memory may take, and how long it is not looked at most."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class UsageMeter:
    """Watches one run; the supervisor makes it before the job starts."""

    def __init__(self, groups: list[str]) -> None:
        self._stat = next((path for group in groups if os.path.exists(path := f"{group}/memory.stat")), None)
        self._peak_bytes = 0
        self._due = 0.0

    def sample(self) -> None:
        """Look at the memory in use, unless that was done a moment ago."""
        began = time.monotonic()
        if began < self._due:
            return
        in_use = _group_bytes(self._stat) if self._stat is not None else None
        if in_use is None:
            in_use = processes_bytes(process_tree.descendants(os.getpid()))
        self._peak_bytes = max(self._peak_bytes, in_use)
        now = time.monotonic()
        self._due = now + min((now - began) / _SHARE, _LONGEST_S)

    def total(self) -> dict[str, float]:
        """What was used, when all processes of the run are gone."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The kernel's own peak is of the largest single process, but it misses nothing between two samples.
        return {
            "peak_memory_bytes": max(self._peak_bytes, used.ru_maxrss * 1024),
            "cpu_s": used.ru_utime + used.ru_stime,
            "read_bytes": used.ru_inblock * _BLOCK_BYTES,
            "written_bytes": used.ru_oublock * _BLOCK_BYTES,
        }


def processes_bytes(processes: set[int]) -> int:
    """Resident memory of processes; what they may share is counted once."""
    own, shared = 0, 0
    for process in processes:
        try:
            with open(f"/proc/{process}/statm", "rb") as file:
                _, resident, common, *_ = map(int, file.read().split())
        except (OSError, ValueError):
            continue
        own += resident - common
        shared = max(shared, common)
    return (own + shared) * _PAGE_BYTES


def _group_bytes(path: str) -> int | None:
    """Memory of a control group that is not backed by files: version 2 (anon, shmem) or 1 (rss); None if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            found = {name: int(value) for name, _, value in (line.partition(" ") for line in file)}
    except (OSError, ValueError):
        return None
    if "anon" in found:
        return found["anon"] + found.get("shmem", 0)
    return found.get("total_rss", found.get("rss"))
