"""Executors and databases that hang, vanish and come back: the loop says so, outlasts it, and can be left at any moment."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from local_runs import eventually, processes_below
from lynceus.cli.live_board import Board
from lynceus.errors import InfrastructureError
from lynceus.executors import bounded_calls
from lynceus.executors.bounded_calls import BoundedCalls, NotAnsweringError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Outage, Request, WallClock
from lynceus.executors.local import LocalExecutor
from lynceus.executors.supervisor import files
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import open_study
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus.trial.record import RequestedState
from lynceus.trial.shared_budget import Payer

if TYPE_CHECKING:
    from postgres import Server


def problem_of(rows: int = 4, usd: float = 1000.0) -> Problem:
    space = Space.build([Integer("n", 1, rows)], price=3600.0)  # a dollar per second
    return Problem(space, constraints=(Constraint.parse("runtime <= 100s"),), budget=Budget(usd=usd))


class Hanging:
    """Runs end at once; the named call waits until it is let go."""

    def __init__(self, hangs: str) -> None:
        self.free = threading.Event()
        self.hangs, self.launched, self.cancelled = hangs, list[int](), list[str]()

    def _wait(self, call: str) -> None:
        if call == self.hangs:
            assert self.free.wait(60.0)

    def launch(self, request: Request) -> str:
        self._wait("launch")
        if request.number not in self.launched:
            self.launched.append(request.number)
        return str(request.number)

    def collect(self, ticket: str) -> Outcome | None:
        self._wait("collect")
        if ticket in self.cancelled:
            return Outcome.failed(FailureReason.USER, "cancelled", seconds=1.0, charged_usd=1.0)
        return None if self.hangs == "cancel" else Outcome(End.FINISHED, 5.0, 5.0)

    def cancel(self, ticket: str) -> None:
        self._wait("cancel")
        self.cancelled.append(ticket)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_calls, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(bounded_calls, "_SLOW_S", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("call", ["launch", "collect", "cancel"])
def test_a_call_that_hangs_is_an_outage_that_can_be_left_and_resumed(call: str, tmp_path: Path) -> None:
    executor, seen = Hanging(call), list[Outage | None]()
    wanted = RequestedState.KILL if call == "cancel" else RequestedState.RUN
    study = open_study(f"sqlite:///{tmp_path}/s.db", "s", problem_of(), preset("sweep", timeout="capped"))
    requests = iter([RequestedState.RUN] * 2)
    began = time.time()
    explore(
        study,
        executor,
        WallClock(),
        requested_state=lambda: next(requests, wanted),
        outage=seen.append,
        leave=lambda: bool(seen),
    )
    assert seen[0] is not None
    assert "the executor does not answer" in seen[0].detail
    assert began <= seen[0].since_s <= time.time()
    assert (len(study.pending), study.observations) == (1, ()), "the run is left open"
    # The same executor answers again: the same run is taken up, no other was started in the meantime.
    executor.free.set()
    explore(study, executor, WallClock(), requested_state=lambda: RequestedState.STOP, outage=seen.append)
    assert executor.launched == [0]
    assert len(study.observations) == 1


@pytest.mark.usefixtures("impatient")
def test_a_loop_goes_on_when_a_hanging_call_answers() -> None:
    executor, seen = Hanging("collect"), list[Outage | None]()

    def outage(found: Outage | None) -> None:
        seen.append(found)
        executor.free.set()

    study = Study(problem_of(), preset("sweep", timeout="capped"))
    explore(study, executor, WallClock(), parallel=2, outage=outage)
    assert [one is None for one in seen] == [False, True]
    assert [end.outcome.end for end in study.observations] == [End.FINISHED] * 4
    assert sorted(executor.launched) == [0, 1, 2, 3]


@pytest.mark.usefixtures("impatient")
def test_the_answer_of_a_call_that_was_late_is_not_given_to_another_one() -> None:
    executor = Hanging("launch")
    calls, request = BoundedCalls(executor), Request("s", 3, 0, {"n": 1}, 10.0, True)
    with pytest.raises(NotAnsweringError, match="trial 3 was to be started, and the executor does not answer"):
        calls.launch(request)
    with pytest.raises(NotAnsweringError, match="trial 3 was to be started, and the executor does not answer"):
        calls.collect("0")
    executor.free.set()
    found: list[str] = []

    def launched() -> bool:
        try:
            found.append(calls.launch(request))
        except NotAnsweringError:
            return False
        return True

    eventually(launched)
    assert found == ["3"]
    assert calls.collect("0") == Outcome(End.FINISHED, 5.0, 5.0)
    calls.close()
    assert not [one for one in threading.enumerate() if one.name == "executor"]


def test_an_executor_that_gives_up_stops_the_loop_and_loses_nothing() -> None:
    class Unreachable(Hanging):
        def collect(self, ticket: str) -> Outcome | None:
            if not self.free.is_set():
                raise InfrastructureError("the controller refuses connections")
            return super().collect(ticket)

    executor = Unreachable("")
    study = Study(problem_of(), preset("sweep", timeout="capped"))
    with pytest.raises(InfrastructureError, match="refuses connections"):
        explore(study, executor, WallClock(), parallel=2)
    assert [run.order.number for run in study.record.open_runs] == [0, 1]
    executor.free.set()
    explore(study, executor, WallClock(), parallel=2)
    assert [end.outcome.end for end in study.observations] == [End.FINISHED] * 4
    assert sorted(executor.launched) == [0, 1, 2, 3]


def test_the_loop_outlasts_a_database_that_vanishes(postgres: "Server") -> None:
    """PostgreSQL is killed while a run is open: nothing is started, nothing is lost, the board of the terminal stays, and the search goes
    on when it is back."""
    executor, seen, launched, restarted = Hanging(""), list[Outage | None](), list[int](), list[bool]()
    killed: list[bool] = []  # the loop may come by again before it notices
    with Storage(postgres.database(f"outage-{uuid4().hex}")) as storage:
        payer = Payer(owner="ana")
        study = open_study(storage, "s", problem_of(), preset("sweep", timeout="capped"), payer=payer)
        board = Board(study)

        def outage(found: Outage | None) -> None:
            seen.append(found)
            if found is not None:
                launched[:] = executor.launched

        def tick() -> None:
            board.update()
            if len(executor.launched) == 2 and not killed:
                killed.append(True)
                postgres.kill()
            if seen and seen[-1] is not None and time.time() - seen[-1].since_s > 1.0 and not restarted:
                assert executor.launched == launched, "nothing is started without a storage"
                restarted.append(True)
                postgres.start()

        explore(study, executor, WallClock(), tick=tick, outage=outage)
        assert [one is None for one in seen[:2]] == [False, True]
        assert sorted(end.order.number for end in study.observations) == [0, 1, 2, 3]
        assert sorted(executor.launched) == [0, 1, 2, 3]
        assert study.spent_usd == 20.0


def test_a_search_can_be_left_while_its_database_is_away(postgres: "Server") -> None:
    executor, seen = Hanging(""), list[Outage | None]()
    with Storage(postgres.database(f"outage-{uuid4().hex}")) as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        explore(
            study,
            executor,
            WallClock(),
            ordered=lambda order: postgres.kill(),
            outage=seen.append,
            leave=lambda: bool(seen),
        )
        postgres.start()
        study.runs.refresh()
        assert len(study.pending) == 1
        explore(study, executor, WallClock())
        assert [end.order.number for end in study.observations] == [0, 1, 2, 3]


def local_study(folder: Path, script: str) -> tuple[Study, LocalExecutor]:
    problem = problem_of()
    study = open_study(f"sqlite:///{folder}/s.db", "s", problem, preset("sweep", timeout="capped"))
    job = JobCommand(script, workdir=folder, grace_s=0.1)
    return study, LocalExecutor(problem, job, folder / "runs")


def test_a_run_whose_directory_is_removed_is_charged_and_ended_before_the_next_one_starts(tmp_path: Path) -> None:
    study, executor = local_study(tmp_path, 'echo "$LYNCEUS_TRIAL" >> log; test "$LYNCEUS_TRIAL" != 0 || sleep 300')
    began, left = time.time(), list[set[int]]()
    directory: Callable[[], Path] = lambda: next((tmp_path / "runs").glob("s-*/0"))  # noqa: E731

    def tick() -> None:
        if not study.observations and (tmp_path / "log").exists() and (directory() / files.STARTED).exists():
            assert processes_below(tmp_path / "runs")
            shutil.rmtree(directory())

    try:
        explore(
            study,
            executor,
            WallClock(),
            ordered=lambda order: left.append(processes_below(tmp_path / "runs")) if order.number else None,
            settled=lambda seen: study.stop() if seen.order.number == 1 else None,
            tick=tick,
        )
    finally:
        executor.close()
    lost, second = (seen.outcome for seen in study.observations)
    assert lost.reason is FailureReason.INFRA
    assert 0 < lost.charged_usd == pytest.approx(lost.seconds)
    assert lost.seconds <= time.time() - began
    assert left == [set()], "its processes ended before the next order"
    assert second.end is End.FINISHED
