"""Real local runs for tests: a small problem, a local executor, and waiting for the end."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InfrastructureError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import OwnedResource, Request, SupportsCleanup
from lynceus.executors.local import LocalExecutor
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor.output import read_output
from lynceus.executors.supervisor.process_tree import RUN_VARIABLE
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.trial.outcome import Outcome

PATIENCE_S = 60.0
"""How long a test waits for something that must happen, even on a busy machine."""


def problem_of(values: tuple[str, ...] = ("a", "b"), usd: float = 100.0) -> Problem:
    space = Space.build(
        [Categorical("word", values), Categorical("other", ("x",))], price=3600.0
    )  # a dollar per second
    return Problem(space, budget=Budget(usd=usd))


@dataclass
class Bench:
    """One executor in its own folder."""

    root: Path
    job: JobCommand
    problem: Problem
    resources: Callable[[int], Resources] | None = None

    def __post_init__(self) -> None:
        self.executor = LocalExecutor(self.problem, self.job, self.root, self.resources)

    def launch(self, row: int = 0, timeout_s: float = 60.0, number: int = 0) -> str:
        return self.executor.launch(Request("study", number, row, self.problem.space.point(row), timeout_s, True, "id"))

    def outcome(self, row: int = 0, timeout_s: float = 60.0, number: int = 0) -> Outcome:
        return self.wait(self.launch(row, timeout_s, number))

    def wait(self, ticket: str) -> Outcome:
        found: list[Outcome] = []

        def has_ended() -> bool:
            outcome = self.executor.collect(ticket)
            found.extend([] if outcome is None else [outcome])
            return bool(found)

        eventually(has_ended)
        return found[0]

    def output(self, stream: str = "stdout", number: int = 0) -> bytes:
        return read_output(str(self.root / "study-id" / str(number) / stream))


MakeBench = Callable[..., Bench]
"""The fixture `bench`."""


def python(code: str) -> tuple[str, ...]:
    """A command that runs some code, without modules of the site."""
    return (sys.executable, "-I", "-S", "-c", code)


def eventually(happened: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def owned_by(executor: SupportsCleanup) -> list[OwnedResource]:
    """The resources that an executor owns. Retries, because a busy cluster may take longer to answer than executors wait."""
    found: list[OwnedResource] = []

    def answered() -> bool:
        try:
            found[:] = executor.owned_resources()
        except InfrastructureError:
            return False
        return True

    eventually(answered)
    return found


def files_below(*folders: Path) -> list[Path]:
    """Every file in these folders; other processes may remove some of them in the meantime."""
    return [Path(where, name) for one in folders for where, _, names in os.walk(one) for name in names]


def contains(path: Path, text: str) -> bool:
    """Whether a file contains a text; false if the file does not exist."""
    with contextlib.suppress(OSError):
        return path.is_file() and text.encode() in path.read_bytes()
    return False


def processes_below(root: Path) -> set[int]:
    """All living job processes of runs in `root`, found by their environment."""
    prefix, folder = f"{RUN_VARIABLE}=".encode(), str(root).encode()
    found = set()
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        ours = any(one.startswith(b"LYNCEUS_RESULT=" + folder) for one in variables)
        if ours and any(one.startswith(prefix) for one in variables):
            found.add(int(name))
    return found


@contextlib.contextmanager
def held_stopped(process: int) -> Iterator[None]:
    """Stop a process again and again, as if it hung: SIGCONT does not help."""
    ended = threading.Event()

    def stop() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not ended.wait(0.002):
                os.kill(process, signal.SIGSTOP)

    os.kill(process, signal.SIGSTOP)
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
