"""The ground on which executors are checked: a small problem, jobs that leave traces, and patience."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Executor, Request
from lynceus.history import Outcome
from lynceus.problem import Budget, Problem, Tariff
from lynceus.space import Categorical, Space

Make = Callable[[Problem, LocalJob, Path], Executor]
Elsewhere = Callable[[Callable[[], object]], int]
_POLL_S = 0.02
WORDS = ("plain", "two words", "'single' \"double\" $(touch pwned) `id` ${word} %s \\n *", "naïve ✓ 日本\nsecond line")
"""Values of the one parameter; row 0 is harmless."""
GRACE_S = 0.5


def forked(deed: Callable[[], object]) -> int:
    """Call a function in a new process; returns its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            deed()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@dataclass(frozen=True, eq=False)
class Ground:
    """What a check needs to know of the executor that it checks."""

    make: Make
    folder: Path
    """Empty, and seen by the jobs too."""
    patience_s: float = 60.0
    """How long something may take that must happen."""
    here: bool = True
    """Whether jobs are processes of this machine."""
    elsewhere: Elsewhere = forked
    """Calls a function in a new process."""
    identity: str = field(default_factory=lambda: secrets.token_hex(6))

    def problem(self, tariff: Tariff | None = None) -> Problem:
        """A dollar per second, whatever the word."""
        space = Space.build([Categorical("word", WORDS)], price=3600.0)
        return Problem(space, budget=Budget(usd=1e6), tariff=tariff or Tariff())

    def job(self, run: tuple[str, ...] | str, env: dict[str, str] | None = None, **secret: str) -> LocalJob:
        """A job that runs in the folder, and finds it as FOLDER."""
        envs = {"FOLDER": str(self.folder), **(env or {})}
        return LocalJob(run, workdir=self.folder, env=envs, secrets=secret, grace_s=GRACE_S)

    def request(self, number: int = 0, row: int = 0, cap_s: float = 600.0, *, boots: bool = True) -> Request:
        """One run of the checked study."""
        return Request("check", number, row, {"word": WORDS[row]}, cap_s, boots, self.identity)

    @contextlib.contextmanager
    def executor(self, job: LocalJob, problem: Problem | None = None) -> Iterator[Executor]:
        """A new executor object; nothing but the disk and the cluster knows of those before it."""
        made = self.make(problem or self.problem(), job, self.folder / "runs")
        try:
            yield made
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()

    def run(self, job: LocalJob, request: Request | None = None) -> tuple[str, Outcome]:
        """A run from its launch to its end."""
        with self.executor(job) as executor:
            ticket = executor.launch(request or self.request())
            return ticket, self.wait(executor, ticket)

    def wait(self, executor: Executor, ticket: str) -> Outcome:
        """The end of a run."""
        found: list[Outcome] = []

        def ended() -> bool:
            outcome = executor.collect(ticket)
            found.extend([] if outcome is None else [outcome])
            return bool(found)

        self.eventually(ended, "the run ends")
        return found[0]

    def eventually(self, happened: Callable[[], object], what: str) -> None:
        """Wait for something that must happen."""
        until = time.monotonic() + self.patience_s
        while not happened():
            assert time.monotonic() < until, f"in {self.patience_s:g} s it does not happen that {what}"
            time.sleep(_POLL_S)

    def until_there(self, executor: Executor, ticket: str, name: str) -> None:
        """Wait for a file that a job makes; a run that ends before is a mistake."""

        def there() -> bool:
            if (self.folder / name).exists():
                return True
            outcome = executor.collect(ticket)
            assert outcome is None, f"the run ended before it wrote {name!r}: {outcome}"
            return False

        self.eventually(there, f"the job writes {name!r}")

    def deeds(self, name: str = "deeds") -> list[str]:
        """Lines that jobs have left."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def nobody_lives(self, name: str = "pids") -> None:
        """No process whose number a job wrote down lives; on other machines this cannot be seen."""
        if self.here:
            numbers = [int(line) for line in self.deeds(name)]
            assert numbers, "the job wrote no process numbers down"
            self.eventually(lambda: not any(map(_lives, numbers)), "all processes of the run are gone")

    def kill(self, name: str) -> None:
        """Kill the process whose number a job wrote down."""
        os.kill(int(self.deeds(name)[0]), signal.SIGKILL)


def _lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
