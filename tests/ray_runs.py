"""Runs on a Ray cluster for tests: an executor, a small problem, and waiting for the end."""

import os
import secrets
import time
from pathlib import Path
from typing import Any

from local_runs import eventually, owned_by
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import OwnedResource, Request, ResourceKind
from lynceus.executors.ray.client import DriverClient
from lynceus.executors.ray.executor import RayExecutor
from lynceus.executors.ray.options import RayOptions
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.trial.outcome import Outcome

PATIENCE_S = 120.0
"""How long a test waits for something that must happen, even on a busy machine."""


class Runs:
    """An executor in its own folder; the variable FOLDER contains its path. Runs cost a dollar per second."""

    def __init__(
        self, folder: Path, address: str, run: tuple[str, ...] | str, *, client: DriverClient | None = None, **more: Any
    ):
        self.folder, self.identity = folder, secrets.token_hex(4)
        job = {name: more.pop(name) for name in ("secrets", "workdir", "grace_s") if name in more}
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        settings: dict[str, Any] = {"workdir": self.work, "grace_s": 0.5, **job}
        self.problem = Problem(Space.build([Integer("n", 1, 3)], price=3600.0), budget=Budget(usd=1e6))
        self.executor = RayExecutor(
            self.problem,
            JobCommand(run, env={"FOLDER": str(folder)}, **settings),
            folder / "runs",
            RayOptions.model_validate({"address": address, **more}),
            client=client,
        )

    def launch(self, n: int = 1, number: int = 0, timeout_s: float = 600.0) -> str:
        return self.executor.launch(Request("trouble", number, n - 1, {"n": n}, timeout_s, True, self.identity))

    def wait(self, ticket: str) -> Outcome:
        until = time.monotonic() + PATIENCE_S
        while (outcome := self.executor.collect(ticket)) is None:
            assert time.monotonic() < until, "the run does not end"
            time.sleep(0.02)
        return outcome

    def wait_for_files(self, ticket: str, *names: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not all((self.folder / name).exists() for name in names):
            outcome = self.executor.collect(ticket)
            assert outcome is None, f"the run ended too early: {outcome}"
            assert time.monotonic() < until, f"{names} are not written"
            time.sleep(0.02)

    def on_cluster(self) -> list[OwnedResource]:
        """Resources of these runs on the cluster."""
        found = owned_by(self.executor)
        return [
            one
            for one in found
            if one.identity == self.identity and one.number is not None and one.kind is not ResourceKind.DIRECTORY
        ]

    def check_cluster_is_clean(self) -> None:
        """Ray takes a moment to remove what has ended."""
        eventually(lambda: not self.on_cluster())

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def check_all_ended(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while any(map(is_alive, self.pids())):
            assert time.monotonic() < until, "a process of the run is alive"
            time.sleep(0.02)


def is_alive(process: int) -> bool:
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
