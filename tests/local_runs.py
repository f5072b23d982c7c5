"""Real runs for tests: a small problem, a local executor, and a way to wait for the end."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InfrastructureError
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Belonging, Request, Sweeps
from lynceus.executor.local import LocalExecutor, Shape
from lynceus.history import Outcome
from lynceus.problem import Budget, Problem
from lynceus.space import Categorical, Space
from lynceus.supervisor.tree import RUN_VARIABLE

PATIENCE_S = 60.0
"""How long a test waits for something that must happen; a busy machine is slow, never wrong."""


def problem_of(values: tuple[str, ...] = ("a", "b"), usd: float = 100.0) -> Problem:
    space = Space.build(
        [Categorical("word", values), Categorical("other", ("x",))], price=3600.0
    )  # a dollar per second
    return Problem(space, budget=Budget(usd=usd))


@dataclass
class Bench:
    """One executor in a folder of its own."""

    root: Path
    job: LocalJob
    problem: Problem
    shape: Callable[[int], Shape] | None = None

    def __post_init__(self) -> None:
        self.executor = LocalExecutor(self.problem, self.job, self.root, self.shape)

    def launch(self, row: int = 0, cap_s: float = 60.0, number: int = 0) -> str:
        return self.executor.launch(Request("study", number, row, self.problem.space.point(row), cap_s, True, "id"))

    def outcome(self, row: int = 0, cap_s: float = 60.0, number: int = 0) -> Outcome:
        return self.wait(self.launch(row, cap_s, number))

    def wait(self, ticket: str) -> Outcome:
        found: list[Outcome] = []

        def ended() -> bool:
            outcome = self.executor.collect(ticket)
            found.extend([] if outcome is None else [outcome])
            return bool(found)

        eventually(ended)
        return found[0]

    def output(self, stream: str = "stdout", number: int = 0) -> bytes:
        return self.executor.output(str(self.root / "study-id" / str(number)), stream)


def eventually(happened: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def belongings_of(executor: Sweeps) -> list[Belonging]:
    """What an executor lists as its own; a starved cluster takes longer than executors wait for an answer, and is asked again."""
    found: list[Belonging] = []

    def listed() -> bool:
        try:
            found[:] = executor.belongings()
        except InfrastructureError:
            return False
        return True

    eventually(listed)
    return found


def files_below(*folders: Path) -> list[Path]:
    """Every file in these folders, also while others remove some of them."""
    return [Path(where, name) for one in folders for where, _, names in os.walk(one) for name in names]


def holds(path: Path, text: str) -> bool:
    """Whether a file has a text in it; one that is gone has not."""
    with contextlib.suppress(OSError):
        return path.is_file() and text.encode() in path.read_bytes()
    return False


def processes_below(root: Path) -> set[int]:
    """Every living process that belongs to a run in `root`: job processes, by what they inherited."""
    mark, folder = f"{RUN_VARIABLE}=".encode(), str(root).encode()
    found = set()
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        ours = any(one.startswith(b"LYNCEUS_RESULT=" + folder) for one in variables)
        if ours and any(one.startswith(mark) for one in variables):
            found.add(int(name))
    return found
