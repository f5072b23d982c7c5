"""Runs on a Ray cluster for tests: one executor, a small problem, and a way to wait for the end."""

import os
import secrets
import time
from pathlib import Path
from typing import Any

from local_runs import belongings_of, eventually
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.on_ray.executor import RayExecutor
from lynceus.executor.on_ray.line import Line
from lynceus.executor.on_ray.options import RayOptions
from lynceus.history import Outcome
from lynceus.problem import Budget, Problem
from lynceus.space import Integer, Space

PATIENCE_S = 120.0
"""How long a test waits for something that must happen; a busy machine is slow, never wrong."""


class Runs:
    """An executor in a folder of its own; jobs find the folder as FOLDER. A dollar per second."""

    def __init__(
        self, folder: Path, address: str, run: tuple[str, ...] | str, *, line: Line | None = None, **more: Any
    ):
        self.folder, self.identity = folder, secrets.token_hex(4)
        job = {name: more.pop(name) for name in ("secrets", "workdir", "grace_s") if name in more}
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        settings: dict[str, Any] = {"workdir": self.work, "grace_s": 0.5, **job}
        self.problem = Problem(Space.build([Integer("n", 1, 3)], price=3600.0), budget=Budget(usd=1e6))
        self.executor = RayExecutor(
            self.problem,
            LocalJob(run, env={"FOLDER": str(folder)}, **settings),
            folder / "runs",
            RayOptions.model_validate({"address": address, **more}),
            line=line,
        )

    def launch(self, n: int = 1, number: int = 0, cap_s: float = 600.0) -> str:
        return self.executor.launch(Request("trouble", number, n - 1, {"n": n}, cap_s, True, self.identity))

    def wait(self, ticket: str) -> Outcome:
        until = time.monotonic() + PATIENCE_S
        while (outcome := self.executor.collect(ticket)) is None:
            assert time.monotonic() < until, "the run does not end"
            time.sleep(0.02)
        return outcome

    def until_there(self, ticket: str, *names: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not all((self.folder / name).exists() for name in names):
            outcome = self.executor.collect(ticket)
            assert outcome is None, f"it ended too early: {outcome}"
            assert time.monotonic() < until, f"{names} are not written"
            time.sleep(0.02)

    def on_cluster(self) -> list[Belonging]:
        """What of these runs is on the cluster."""
        found = belongings_of(self.executor)
        return [
            one for one in found if one.identity == self.identity and one.number is not None and one.kind != "directory"
        ]

    def nothing_on_cluster(self) -> None:
        """The cluster takes a moment to forget what was ended."""
        eventually(lambda: not self.on_cluster())

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def nobody_lives(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while any(map(lives, self.pids())):
            assert time.monotonic() < until, "a process of the run lives"
            time.sleep(0.02)


def lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def parent_of(process: int) -> int:
    with open(f"/proc/{process}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def all_arguments() -> bytes:
    """The arguments of every process of this machine."""
    found = b""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
    return found
