"""The conformance suite finds errors: each of these executors has one, and the check for it fails."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand, Scratch
from lynceus.executors.interface import LostRunError, OwnedResource, Request
from lynceus.executors.local import LocalExecutor
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import check_executor, executor_checks
from lynceus.testing.job import small_job
from lynceus.trial.outcome import End, Outcome


class WithoutTimeout(LocalExecutor):
    def launch(self, request: Request) -> str:
        return super().launch(replace(request, timeout_s=5.0 if request.timeout_s == 2.0 else request.timeout_s))


class StartsTwice(LocalExecutor):
    def launch(self, request: Request) -> str:
        ticket = super().launch(request)
        if self.collect(ticket) is not None:
            os.rename(ticket, f"{ticket}-forgotten")  # not deleted: its supervisor may still write there
            super().launch(request)
        return ticket


class ChangesOutcome(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(
            outcome, seconds=outcome.seconds + 1.0 if self._starts.get(ticket) else outcome.seconds
        )


class ChargesHalf(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, charged_usd=outcome.charged_usd / 2)


class IgnoresCancel(LocalExecutor):
    def cancel(self, ticket: str) -> None:
        pass


class IgnoresFailures(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, end=End.FINISHED, reason=None)


class NeverLost(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        try:
            return super().collect(ticket)
        except LostRunError:
            return None


class ListsNothing(LocalExecutor):
    def owned_resources(self) -> list[OwnedResource]:
        return []


class LeaksSecrets(LocalExecutor):
    def launch(self, request: Request) -> str:
        ticket = super().launch(request)
        Path(ticket, "notes").write_text(str(dict(self._job.secrets)))
        return ticket


class SharesScratch(LocalExecutor):
    def __init__(self, problem: Problem, job: JobCommand, root: Path) -> None:
        shared = {**job.env, "LYNCEUS_SCRATCH": str(root)}
        super().__init__(problem, replace(job, env=shared, scratch=Scratch("none")), root)


class KeepsScratch(LocalExecutor):
    def __init__(self, problem: Problem, job: JobCommand, root: Path) -> None:
        super().__init__(problem, replace(job, scratch=replace(job.scratch, keep=True)), root)


BROKEN = {
    "the timeout is enforced": WithoutTimeout,
    "a run that is launched twice runs once": StartsTwice,
    "an outcome never changes": ChangesOutcome,
    "time is charged as the billing says": ChargesHalf,
    "a run can be cancelled": IgnoresCancel,
    "failures have a reason": IgnoresFailures,
    "a run without a directory is lost": NeverLost,
    "owned resources are listed and can be removed": ListsNothing,
    "secrets do not leak": LeaksSecrets,
    "runs do not share files in their scratch directories": SharesScratch,
    "a run can be started in its scratch directory": KeepsScratch,
}


@pytest.mark.parametrize("check", BROKEN)
def test_a_broken_executor_fails_its_check(check: str, tmp_path: Path) -> None:
    made: list[LocalExecutor] = []

    def make(problem: Problem, job: JobCommand, root: Path) -> LocalExecutor:
        made.append(BROKEN[check](problem, job, root))
        return made[-1]

    with pytest.raises(AssertionError):
        executor_checks()[check](ExecutorHarness(make, tmp_path, patience_s=4.0))
    for path in (tmp_path / "runs").glob("*/*"):  # stop what the executor left running
        (path / "cancel").touch()


class DropsMetrics(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, metrics={})


def test_the_message_names_the_check(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a job finishes and reports: "):
        check_executor(DropsMetrics, tmp_path, patience_s=4.0)


def test_the_table_executor_conforms_where_it_applies() -> None:
    """Simulated runs have no processes, but timeouts, charges, repeated calls and lost runs work the same."""
    job = small_job("runtime <= 40m")
    clock = SimulatedClock()
    executor = TableExecutor(job.problem, Measurements(job.measured.seconds, job.measured.metrics), clock)
    row = 3
    full = float(job.measured.seconds[row])
    for number, timeout_s in enumerate((full / 2, full * 2)):
        request = Request("study", number, row, {}, timeout_s, boots=True)
        ticket = executor.launch(request)
        assert executor.collect(ticket) is None
        clock.sleep(1.0)
        outcome = executor.collect(ticket)
        assert outcome is not None
        assert (outcome.end, outcome.seconds) == ((End.TIMEOUT, timeout_s) if number == 0 else (End.FINISHED, full))
        assert outcome.charged_usd == job.problem.cost(row, outcome.seconds)
        assert executor.collect(ticket) == outcome
    with pytest.raises(LostRunError, match="belongs to another process"):
        executor.collect("study/99")
