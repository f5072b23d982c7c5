"""The harness of the executor checks: a small problem, jobs that leave traces, and waiting with a timeout."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Executor, Request, SupportsClose
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.trial.outcome import Outcome

MakeExecutor = Callable[[Problem, JobCommand, Path], Executor]
CallInProcess = Callable[[Callable[[], object]], int]
_POLL_S = 0.02
WORDS = ("plain", "two words", "'single' \"double\" $(touch pwned) `id` ${word} %s \\n *", "naïve ✓ 日本\nsecond line")
"""Values of the only parameter; row 0 has no special characters."""
GRACE_S = 0.5


def call_in_fork(function: Callable[[], object]) -> int:
    """Call a function in a forked process; returns its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@dataclass(frozen=True, eq=False)
class ExecutorHarness:
    """Makes executors, jobs and requests for a check."""

    make: MakeExecutor
    folder: Path
    """Empty; jobs see it under the same path."""
    patience_s: float = 60.0
    """How long to wait for something that must happen."""
    jobs_are_local: bool = True
    """Whether jobs are processes of this machine."""
    call_in_process: CallInProcess = call_in_fork
    """Calls a function in a new process and returns its exit code."""
    identity: str = field(default_factory=lambda: secrets.token_hex(6))
    rents_machines: bool = False
    """Whether machines are charged as long as they exist, and not only while a job runs on them."""

    def problem(self, billing: Billing | None = None) -> Problem:
        """All configurations cost a dollar per second."""
        space = Space.build([Categorical("word", WORDS)], price=3600.0)
        return Problem(space, budget=Budget(usd=1e6), billing=billing or Billing())

    def job(self, run: tuple[str, ...] | str, env: dict[str, str] | None = None, **secret: str) -> JobCommand:
        """A job that runs in the folder; the variable FOLDER contains its path."""
        envs = {"FOLDER": str(self.folder), **(env or {})}
        return JobCommand(run, workdir=self.folder, env=envs, secrets=secret, grace_s=GRACE_S)

    def request(self, number: int = 0, row: int = 0, timeout_s: float = 600.0, *, boots: bool = True) -> Request:
        """One run of the study `check`."""
        return Request("check", number, row, {"word": WORDS[row]}, timeout_s, boots, self.identity)

    @contextlib.contextmanager
    def executor(self, job: JobCommand, problem: Problem | None = None) -> Iterator[Executor]:
        """A new executor object, which knows of earlier runs only what is on disk or on the cluster."""
        made = self.make(problem or self.problem(), job, self.folder / "runs")
        try:
            yield made
        finally:
            if isinstance(made, SupportsClose):
                made.close()

    def run(self, job: JobCommand, request: Request | None = None) -> tuple[str, Outcome]:
        """Launch a run and wait for its end."""
        with self.executor(job) as executor:
            ticket = executor.launch(request or self.request())
            return ticket, self.wait(executor, ticket)

    def wait(self, executor: Executor, ticket: str) -> Outcome:
        """Wait for the end of a run."""
        found: list[Outcome] = []

        def has_ended() -> bool:
            outcome = executor.collect(ticket)
            found.extend([] if outcome is None else [outcome])
            return bool(found)

        self.wait_until(has_ended, "the end of the run")
        return found[0]

    def wait_until(self, happened: Callable[[], object], what: str) -> None:
        """Wait for something that must happen."""
        until = time.monotonic() + self.patience_s
        while not happened():
            assert time.monotonic() < until, f"waited {self.patience_s:g} s in vain for {what}"
            time.sleep(_POLL_S)

    def wait_for_file(self, executor: Executor, ticket: str, name: str) -> None:
        """Wait for a file that a job writes; fails if the run ends before."""

        def exists() -> bool:
            if (self.folder / name).exists():
                return True
            outcome = executor.collect(ticket)
            assert outcome is None, f"the run ended before it wrote {name!r}: {outcome}"
            return False

        self.wait_until(exists, f"the file {name!r} of the job")

    def lines(self, name: str = "log") -> list[str]:
        """The lines of a file that jobs wrote; an empty list if it does not exist."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def check_all_ended(self, name: str = "pids") -> None:
        """Check that no process is alive whose id a job wrote to a file; not possible for jobs on other machines."""
        if self.jobs_are_local:
            numbers = [int(line) for line in self.lines(name)]
            assert numbers, "the job wrote no process ids"
            self.wait_until(lambda: not any(map(_is_alive, numbers)), "the end of all processes of the run")

    def kill(self, name: str) -> None:
        """Kill the process whose id a job wrote to a file."""
        os.kill(int(self.lines(name)[0]), signal.SIGKILL)


def _is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
