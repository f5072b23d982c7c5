"""What is copied to a cluster, and what comes back: a folder with the job's files and its supervisor, and lines of the job's log."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import secrets
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import Any

from lynceus.executors.command import JobCommand, absent_variables, environment
from lynceus.executors.databases_in_use import open_databases
from lynceus.executors.run_directory import SHIPPED
from lynceus.executors.skypilot import node
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import runner
from lynceus.executors.supervisor.commands import EXIT_DISK_FULL, EXIT_NO_DIRECTORY
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.scratch import SENT_RUN
from lynceus.trial.text import clean_line

SENT = "sent"
"""The part of a run directory that is copied to the cluster; removed when it has arrived."""
_FOLDER = SENT_RUN
_NEVER = (".git", "lynceus.db")
"""Not copied with a workdir: what only Lynceus and git need. Databases in use are not copied either."""
_LINE = re.compile(rf"{node.LINE} (\d{{1,4}}) (\d{{1,6}}) (\d{{1,6}}) ([A-Za-z0-9+/=]+)")
_MOST_BYTES = 256 << 20
"""How much the result files of a node may have, unpacked."""
_LAST_CHARS = 1 << 16
_PROBLEM = re.compile(rf"{node.TROUBLE} (\d+)")
_PROBLEMS = {
    EXIT_NO_DIRECTORY: "the node cannot see the folder of the run",
    EXIT_DISK_FULL: "the disk of the node is full; free some space or request a larger disk",
}


def pack(ticket: Path, request: dict[str, Any], job: JobCommand, root: Path, *, workdir: bool) -> tuple[Path, str]:
    """A folder to copy, and the command that runs it. Secrets are encrypted in the folder; their key is in the command."""
    staged = ticket / SENT
    shutil.rmtree(staged, ignore_errors=True)
    if workdir:
        _link_tree(job.workdir.resolve(), staged, root)
    folder = staged / f"{_FOLDER}{request['run']}"
    folder.mkdir(parents=True)
    for name in SHIPPED:
        if (ticket / name).exists():
            shutil.copy(ticket / name, folder / name)
    (folder / node.RUNNER).write_bytes(runner())
    shutil.copy(node.__file__, folder / "node.py")
    (folder / node.SPARE).write_bytes(os.urandom(node.SPARE_BYTES))  # not zeros, which take no room on some disks
    key = secrets.token_hex(32)
    given = {
        "environment": environment(job, request, {}),
        "secrets": list(job.secrets.values()),
        "inherit": True,
        "without": absent_variables(job, request["params"]),
    }
    descriptor = os.open(folder / node.ENVIRONMENT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(node.crypt(json.dumps(given).encode(), key))
    return staged, f'exec python3 -I -S "$HOME/sky_workdir/{folder.name}/node.py" {key}'


def unpack(log: str, ticket: Path) -> OutcomeRecord | None:
    """Save the result files of the nodes in the run directory; returns how the run ended, None if the log is incomplete."""
    records: dict[str, OutcomeRecord] = {}
    for rank, archive in _archives(log).items():
        try:
            found = _result_files(archive)
            record = json.loads(found.pop(files.OUTCOME, b"null"))
        except (tarfile.TarError, zlib.error, ValueError, EOFError, OSError):
            continue  # not what a node prints
        folder = ticket if rank == "0" else ticket / f"rank-{rank}"
        folder.mkdir(exist_ok=True)
        for name, data in found.items():
            (folder / name).write_bytes(data)
        if _is_record(record):
            records[rank] = record
    return _combine(records)


def _result_files(archive: bytes) -> dict[str, bytes]:
    """The result files in an archive, and no others: a node must not write what Lynceus keeps about the run."""
    found, left = {}, _MOST_BYTES
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        for member in packed:
            content = packed.extractfile(member) if member.isfile() and member.name in node.RESULT_FILES else None
            if content is not None:
                found[member.name] = content.read(left)
                left -= len(found[member.name])
    return found


def _is_record(record: Any) -> bool:
    """Whether this is how a run ended."""
    return (
        isinstance(record, dict)
        and record.get("end") in ("finished", "capped", "failed")
        and isinstance(record.get("seconds"), int | float)
        and math.isfinite(record["seconds"])
        and isinstance(record.get("metrics"), dict)
        and isinstance(record.get("trace"), list)
    )


def problem_in(log: str) -> str:
    """Why a node could not run the job at all; empty if the log does not say so."""
    match = _PROBLEM.search(log)
    if match is None:
        return ""
    return _PROBLEMS.get(int(match[1]), f"the supervisor on the node ended with exit code {match[1]}")


def last_line(log: str) -> str:
    """The last line of a log that is not empty and not part of the result files."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", log[-_LAST_CHARS:]).splitlines()]
    return next((clean_line(line, 200) for line in reversed(lines) if line and node.LINE not in line), "")


def _combine(records: dict[str, OutcomeRecord]) -> OutcomeRecord | None:
    """The outcome of the first node, unless the job failed on another node, which made SkyPilot stop the rest."""
    for rank in sorted(records, key=int):
        record = records[rank]
        if record["end"] == "failed" and record.get("reason") in ("job", "oom") and rank != "0":
            first = records.get("0", record)
            return {**record, "seconds": first["seconds"], "detail": f"node {rank}: {record.get('detail', '')}"}
    return records.get("0")


def _archives(log: str) -> dict[str, bytes]:
    """Complete archives by rank; lines may come twice or be missing."""
    pieces: dict[str, dict[int, str]] = {}
    expected: dict[str, int] = {}
    for rank, index, count, text in _LINE.findall(log):
        pieces.setdefault(rank, {})[int(index)] = text
        expected[rank] = int(count)
    return {
        rank: _decoded("".join(found[index] for index in sorted(found)))
        for rank, found in pieces.items()
        if len(found) == expected[rank]
    }


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _link_tree(source: Path, target: Path, root: Path) -> None:
    """Hard links to the same files under another path, without those that must not be copied."""

    def excluded(folder: str, names: list[str]) -> set[str]:
        private = {name for name in names if name in _NEVER or (Path(folder) / name).resolve() == root}
        return private | open_databases(names)

    shutil.copytree(source, target, symlinks=True, ignore=excluded, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
