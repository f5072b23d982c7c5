"""Names of workers, and whether a worker is alive: a process is known by host, boot, process number and start time."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path


def myself() -> str:
    """A unique name for one journal of this process: `host/boot/pid/start/token`."""
    return f"{socket.gethostname()}/{_boot()}/{os.getpid()}/{_started(os.getpid())}/{secrets.token_hex(4)}"


def lives(worker: str) -> bool | None:
    """Whether the process of a worker runs; None when it is on another host and cannot be seen from here."""
    try:
        host, boot, pid, started, _ = worker.split("/")
    except ValueError:
        return None
    if host != socket.gethostname():
        return None
    return boot == _boot() and started == _started(int(pid))


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:
        return "unknown"


def _started(pid: int) -> str:
    """Clock ticks from boot to the start of a process; empty when there is none (or only a zombie)."""
    try:
        # The name in parentheses may itself hold spaces and parentheses; what follows the last one is regular.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
