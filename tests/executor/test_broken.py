"""The conformance suite can fail: executors that break one promise each are caught by the check of that promise."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.executor import Measurements, PretendedClock, TableExecutor
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Belonging, LostRunError, Request
from lynceus.executor.local import LocalExecutor
from lynceus.history import End, Outcome
from lynceus.problem import Problem
from lynceus.testing import Ground, check_executor, executor_checks
from lynceus.testing.job import small_job


class WithoutCap(LocalExecutor):
    def launch(self, request: Request) -> str:
        return super().launch(replace(request, cap_s=5.0 if request.cap_s == 2.0 else request.cap_s))


class Twice(LocalExecutor):
    def launch(self, request: Request) -> str:
        ticket = super().launch(request)
        if self.collect(ticket) is not None:
            os.rename(ticket, f"{ticket}-forgotten")  # whole: its supervisor may still write there
            super().launch(request)
        return ticket


class Forgetful(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(
            outcome, seconds=outcome.seconds + 1.0 if self._starts.get(ticket) else outcome.seconds
        )


class Cheap(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, charged_usd=outcome.charged_usd / 2)


class Deaf(LocalExecutor):
    def cancel(self, ticket: str) -> None:
        pass


class Kind(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, end=End.FINISHED, reason=None)


class NeverLost(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        try:
            return super().collect(ticket)
        except LostRunError:
            return None


class Blind(LocalExecutor):
    def belongings(self) -> list[Belonging]:
        return []


class Talkative(LocalExecutor):
    def launch(self, request: Request) -> str:
        ticket = super().launch(request)
        Path(ticket, "notes").write_text(str(dict(self._job.secrets)))
        return ticket


BROKEN = {
    "the cap is kept": WithoutCap,
    "a run that is launched again runs once": Twice,
    "an outcome stays what it is": Forgetful,
    "time is charged by the tariff": Cheap,
    "a run is cancelled": Deaf,
    "failures have a reason": Kind,
    "a run that is gone is lost": NeverLost,
    "what runs is listed and can be ended": Blind,
    "secrets leave no trace": Talkative,
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_noticed(promise: str, tmp_path: Path) -> None:
    made: list[LocalExecutor] = []

    def make(problem: Problem, job: LocalJob, root: Path) -> LocalExecutor:
        made.append(BROKEN[promise](problem, job, root))
        return made[-1]

    with pytest.raises(AssertionError):
        executor_checks()[promise](Ground(make, tmp_path, patience_s=4.0))
    for path in (tmp_path / "runs").glob("*/*"):  # what a deaf executor left running
        (path / "cancel").touch()


class Silent(LocalExecutor):
    def collect(self, ticket: str) -> Outcome | None:
        outcome = super().collect(ticket)
        return outcome and replace(outcome, metrics={})


def test_the_message_names_the_promise(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a job finishes and reports: "):
        check_executor(Silent, tmp_path, patience_s=4.0)


def test_measured_tables_keep_what_applies_to_them() -> None:
    """Pretended runs have no processes; caps, charges, repeated questions and lost runs are the same promises."""
    job = small_job("runtime <= 40m")
    clock = PretendedClock()
    executor = TableExecutor(job.problem, Measurements(job.measured.seconds, job.measured.metrics), clock)
    row = 3
    full = float(job.measured.seconds[row])
    for number, cap_s in enumerate((full / 2, full * 2)):
        request = Request("study", number, row, {}, cap_s, boots=True)
        ticket = executor.launch(request)
        assert executor.collect(ticket) is None
        clock.sleep(1.0)
        outcome = executor.collect(ticket)
        assert outcome is not None
        assert (outcome.end, outcome.seconds) == ((End.CAPPED, cap_s) if number == 0 else (End.FINISHED, full))
        assert outcome.charged_usd == job.problem.cost(row, outcome.seconds)
        assert executor.collect(ticket) == outcome
    with pytest.raises(LostRunError, match="belongs to another process"):
        executor.collect("study/99")
