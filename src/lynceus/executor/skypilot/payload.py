"""What travels to a cluster, and what comes back: a folder with the job's files and its supervisor, and lines of the job's log."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import secrets
import shutil
import tarfile
from pathlib import Path
from typing import Any

from lynceus.executor.command import LocalJob, environment
from lynceus.executor.databases import databases
from lynceus.executor.directory import SHIPPED
from lynceus.executor.skypilot import node
from lynceus.supervisor import files
from lynceus.supervisor.bundle import runner

SENT = "sent"
"""The part of a run's directory that travels; removed when it has arrived."""
_FOLDER = "lynceus-run-"
_STAYS = (".git", "lynceus.db")
"""Never sent along with a workdir: what only Lynceus and git need; nor are databases in use."""
_LINE = re.compile(rf"{node.LINE} (\S+) (\d+) (\d+) (\S+)")
_TROUBLE = re.compile(rf"{node.TROUBLE} (\d+)")
TROUBLES = {
    73: "the node cannot see the run's folder",
    74: "the disk of the node is full; free some space or ask for a larger one",
}


def pack(ticket: Path, request: dict[str, Any], job: LocalJob, root: Path, *, workdir: bool) -> tuple[Path, str]:
    """A folder to send, and the command that runs what is in it. Secrets are in the folder, their key is in the command."""
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
    key = secrets.token_hex(32)
    given = {"environment": environment(job, request, {}), "secrets": list(job.secrets.values()), "inherit": True}
    descriptor = os.open(folder / node.ENVIRONMENT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(node.crypt(json.dumps(given).encode(), key))
    return staged, f'exec python3 -I -S "$HOME/sky_workdir/{folder.name}/node.py" {key}'


def unpack(log: str, ticket: Path) -> dict[str, Any] | None:
    """Put what the nodes told into the run's directory; returns how the run ended, nothing if they did not come to tell it."""
    told: dict[str, dict[str, Any]] = {}
    for rank, archive in _archives(log).items():
        folder = ticket if rank == "0" else ticket / f"rank-{rank}"
        folder.mkdir(exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
            for member in packed.getmembers():
                content = packed.extractfile(member) if member.isfile() else None
                name = os.path.basename(member.name)
                if content is None:
                    continue
                if name == files.OUTCOME:
                    told[rank] = json.load(content)
                else:
                    (folder / name).write_bytes(content.read())
    return _worst(told)


def trouble(log: str) -> str:
    """Why a node could not run the job at all, if it said so."""
    match = _TROUBLE.search(log)
    if match is None:
        return ""
    return TROUBLES.get(int(match[1]), f"the supervisor on the node ended with exit code {match[1]}")


def last_words(log: str) -> str:
    """The last line of a log that says anything."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines()]
    return next((line[:200] for line in reversed(lines) if line and node.LINE not in line), "")


def _worst(told: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The first node speaks for all, unless another one failed by itself, which made SkyPilot end the rest."""
    for rank in sorted(told, key=int):
        if told[rank]["end"] == "failed" and told[rank].get("reason") in ("job", "oom") and rank != "0":
            first = told.get("0", told[rank])
            return {**told[rank], "seconds": first["seconds"], "detail": f"node {rank}: {told[rank].get('detail', '')}"}
    return told.get("0")


def _archives(log: str) -> dict[str, bytes]:
    """By rank; lines may come twice, or be cut off, and then nothing is taken."""
    pieces: dict[str, dict[int, str]] = {}
    wanted: dict[str, int] = {}
    for rank, place, count, text in _LINE.findall(log):
        pieces.setdefault(rank, {})[int(place)] = text
        wanted[rank] = int(count)
    return {
        rank: base64.b64decode("".join(found[place] for place in sorted(found)))
        for rank, found in pieces.items()
        if len(found) == wanted[rank]
    }


def _link_tree(source: Path, target: Path, root: Path) -> None:
    """The same files under another path, without what must not travel; nothing is copied where a link will do."""

    def stays(folder: str, names: list[str]) -> set[str]:
        private = {name for name in names if name in _STAYS or (Path(folder) / name).resolve() == root}
        return private | databases(names)

    shutil.copytree(source, target, symlinks=True, ignore=stays, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
