"""What Slurm's accounting knows about a job (`sacct`), for runs whose supervisor was killed before it could measure and record them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

from lynceus.executors.slurm.command import Command, UnreachableError

_WAIT_S = 3.0
"""How long to wait for an answer: a run is settled without it, too."""
_COLUMNS = ("JobID", "State", "MaxRSS", "TotalCPU", "MaxDiskRead", "MaxDiskWrite", "NodeList", "JobName")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class JobAccount:
    """A job as `sacct` shows it."""

    state: str
    nodes: str
    name: str
    usage: dict[str, float] | None
    """What its batch step, in which the supervisor runs, used; None if Slurm did not measure it (`JobAcctGatherType`)."""


def ask_account(job: str, name: str) -> JobAccount | None:
    """The account of a job with this name; None where `sacct` is not installed, accounting is off, or slurmdbd does not answer."""
    if shutil.which("sacct") is None:
        return None
    try:
        asked = Command(
            ["sacct", f"--jobs={job}", "--parsable2", "--noheader", "--noconvert", f"--format={','.join(_COLUMNS)}"]
        )
        answer = asked.answer(_WAIT_S)
    except UnreachableError:
        return None
    if answer is None:
        asked.kill()
        return None
    account = None if answer.code else read_account(answer.out, job)
    return account if account is not None and account.name == name else None  # perhaps another job had this number


def read_account(text: str, job: str) -> JobAccount | None:
    """The account of a job in what `sacct` printed; None if it is not there.

    >>> read_account("7|OUT_OF_MEMORY||00:01||||train\\n7.batch|OUT_OF_MEMORY|2048K|00:01|1M|0||batch", "7").usage["peak_memory_bytes"]
    2097152.0
    """
    lines = (line.split("|", len(_COLUMNS) - 1) for line in text.splitlines())
    rows = {parts[0]: dict(zip(_COLUMNS, parts, strict=True)) for parts in lines if len(parts) == len(_COLUMNS)}
    if job not in rows:
        return None
    state = rows[job]["State"].split(" ")[0]  # CANCELLED by 1000
    return JobAccount(state, rows[job]["NodeList"], rows[job]["JobName"], _usage(rows.get(f"{job}.batch", {})))


def _usage(row: dict[str, str]) -> dict[str, float] | None:
    """The fields of `lynceus.trial.usage.Usage`; None if one is missing."""
    peak, cpu_s = _bytes(row.get("MaxRSS", "")), _seconds(row.get("TotalCPU", ""))
    read, written = _bytes(row.get("MaxDiskRead", "")), _bytes(row.get("MaxDiskWrite", ""))
    if not peak or cpu_s is None or read is None or written is None:
        return None
    return {"peak_memory_bytes": peak, "cpu_s": cpu_s, "read_bytes": read, "written_bytes": written}


def _bytes(text: str) -> float | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    return None if found is None else float(found[1]) * _UNITS[found[2]]


def _seconds(text: str) -> float | None:
    """Seconds of `[days-][hours:]minutes:seconds[.fraction]`.

    >>> _seconds("1-02:00:01"), _seconds("00:01.359"), _seconds("")
    (93601.0, 1.359, None)
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
