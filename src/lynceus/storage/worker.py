"""Names of workers, and whether a worker is alive: a process is known by host, boot, PID namespace, process number and start time."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

_SHORT_BOOT = 8
"""Characters of the boot id in names that version 0.1 wrote."""


@dataclass(frozen=True, slots=True)
class WorkerName:
    """The parts of a worker's name."""

    host: str
    boot: str
    """Of the kernel: the same for all containers of a machine, another one after every start."""
    namespace: str
    """The PID namespace, in which the process number counts; empty when it is not known."""
    pid: int
    started: str
    """Clock ticks from boot to the start of the process."""


def myself() -> str:
    """A unique name for one journal of this process: `host/boot/namespace/pid/start/token`."""
    pid = os.getpid()
    place = f"{socket.gethostname()}/{boot_id() or 'unknown'}/{_namespace()}"
    return f"{place}/{pid}/{_started(pid)}/{secrets.token_hex(4)}"


def parse_worker(worker: str) -> WorkerName | None:
    """The parts of a name, also of one that version 0.1 wrote (`host/boot/pid/start/token`); None for any other text."""
    parts = worker.split("/")
    if len(parts) == 5:
        parts.insert(2, "")
    if len(parts) != 6 or not parts[3].isdecimal():
        return None
    return WorkerName(parts[0], parts[1], parts[2], int(parts[3]), parts[4])


def lives(worker: str) -> bool | None:
    """Whether the process of a worker runs; None when that cannot be seen from here.

    A process number means something in one PID namespace of one boot. Containers may share a host name, so a process that is not found
    is known to be dead only where both are ours.
    """
    name = parse_worker(worker)
    if name is None or not (boot := boot_id()) or not (namespace := _namespace()):
        return None
    if name.namespace:
        return None if (name.boot, name.namespace) != (boot, namespace) else _started(name.pid) == name.started
    # Version 0.1 named no namespace: the process that is found is the worker, one that is not may be in another namespace.
    same_boot = (name.host, name.boot) == (socket.gethostname(), boot[:_SHORT_BOOT])
    return True if same_boot and _started(name.pid) == name.started else None


def boot_id() -> str:
    """The kernel's name for this boot; empty when it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    """The PID namespace of this process; empty when `/proc` shows another one, so that process numbers tell nothing."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return ""
        return "".join(character for character in os.readlink("/proc/self/ns/pid") if character.isdecimal())
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Clock ticks from boot to the start of a process; empty when there is none (or only a zombie)."""
    try:
        # The name in parentheses may itself hold spaces and parentheses; what follows the last one is regular.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
