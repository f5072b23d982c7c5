"""The loop: adoption, wishes, odd executors, lost runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from lynceus.durable import continued, open_study
from lynceus.engine import explore
from lynceus.errors import InfrastructureError, InputError
from lynceus.executor import LostRunError, Measurements, PretendedClock, Request, TableExecutor
from lynceus.history import End, Outcome, Reason
from lynceus.ledger import Wish
from lynceus.ledger.sql import Storage
from lynceus.policy import Because, preset
from lynceus.problem import Budget, Limit, Problem
from lynceus.space import Integer, Space
from lynceus.study import Study, create_study


def problem_of(usd: float = 1000.0) -> Problem:
    space = Space.build([Integer("n", 1, 12)], price=3600.0)
    return Problem(space, limits=(Limit.parse("runtime <= 100s"),), budget=Budget(usd=usd))


@dataclass
class Scripted:
    """An executor whose launches and outcomes are given by functions of the trial's number."""

    outcome: Callable[[int], Outcome | None] = lambda number: Outcome(End.FINISHED, 5.0, 5.0)
    refuse: Callable[[int], Exception | None] = lambda number: None
    launched: list[int] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def launch(self, request: Request) -> str:
        error = self.refuse(request.number)
        if error is not None:
            raise error
        self.launched.append(request.number)
        return str(request.number)

    def collect(self, ticket: str) -> Outcome | None:
        if ticket in self.cancelled:
            return Outcome(End.FAILED, 1.0, 1.0, reason=Reason.USER)
        return self.outcome(int(ticket))

    def cancel(self, ticket: str) -> None:
        self.cancelled.append(ticket)


def test_a_replay_is_the_same_in_memory_and_on_the_disk(tmp_path: Path) -> None:
    problem = problem_of()
    measured = Measurements(np.linspace(30.0, 120.0, 12))
    histories = []
    for storage in (None, f"sqlite:///{tmp_path}/s.db"):
        for parallel in (1, 3):
            policy = preset("lynceus-2020", lookahead=0, timeout="tg-first")
            name = f"with {parallel}"
            study = Study(problem, policy) if storage is None else open_study(storage, name, problem, policy)
            clock = PretendedClock()
            explore(study, TableExecutor(problem, measured, clock), clock, parallel=parallel)
            histories.append(study.history)
    assert histories[:2] == histories[2:]


def test_what_was_only_ordered_is_started_and_what_runs_is_adopted(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        first = open_study(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        orders = [first.order(), first.order()]
        assert all(orders)
        first.launched(1, "1")
        first.release()
        executor = Scripted()
        second = continued(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        explore(second, executor, PretendedClock(), wish=lambda: Wish.STOP)
        assert executor.launched == [0]
        assert [seen.order.number for seen in second.history] == [0, 1]


def test_a_run_that_cannot_be_started_is_one_failed_trial() -> None:
    study = Study(problem_of(), preset("sweep"))
    refusals: dict[int, Exception] = {
        0: InfrastructureError("no room"),
        1: OSError("too many files"),
        2: InputError("a NUL byte"),
    }
    explore(study, Scripted(refuse=refusals.get), PretendedClock())
    ends = [(seen.outcome.end, seen.outcome.reason, seen.outcome.charged_usd) for seen in study.history[:4]]
    assert ends[:3] == [
        (End.FAILED, Reason.INFRA, 0.0),
        (End.FAILED, Reason.INFRA, 0.0),
        (End.FAILED, Reason.JOB, 0.0),
    ]
    assert ends[3][0] is End.FINISHED


def test_a_machine_on_which_nothing_starts_pauses_the_study() -> None:
    study = Study(problem_of(), preset("sweep"))
    explore(study, Scripted(refuse=lambda number: InfrastructureError("No space left on device")), PretendedClock())
    assert study.stopped is not None
    assert study.stopped.because is Because.PAUSED
    assert "the last 5 trials failed (5 infra); the last: not started: No space left on device" in study.stopped.reason


def test_a_run_of_which_nothing_is_left_is_charged_up_to_its_last_sign_of_life(tmp_path: Path) -> None:
    now = [1000.0]

    def lost(number: int) -> Outcome | None:
        if number == 0:
            raise LostRunError("its directory is gone")
        return Outcome(End.FINISHED, 5.0, 5.0)

    with Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: now[0]) as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))
        order = study.order()
        assert order is not None
        study.launched(0, "0")
        now[0] += 30.0
        study.heartbeat([0])
        now[0] += 500.0
        again = continued(storage, "s", problem_of(), preset("sweep"))
        study.release()
        explore(again, Scripted(outcome=lost), PretendedClock(), wish=lambda: Wish.STOP)
        (seen,) = again.history
        assert (seen.outcome.reason, seen.outcome.seconds, seen.outcome.charged_usd) == (Reason.INFRA, 30.0, 30.0)


def test_a_run_of_which_only_nonsense_is_left_is_one_failed_trial() -> None:
    def odd(number: int) -> Outcome | None:
        if number == 1:
            raise ValueError("Expecting value: line 1 column 1")
        if number == 2:
            raise PermissionError("Permission denied")
        return Outcome(End.FINISHED, 5.0, 5.0)

    study = Study(problem_of(), preset("sweep"))
    explore(study, Scripted(outcome=odd), PretendedClock())
    reasons = [seen.outcome.reason for seen in study.history]
    assert reasons[:4] == [None, Reason.INFRA, Reason.INFRA, None]
    assert len(study.history) == 14  # twelve rows, two of them twice


def test_stop_lets_runs_end_and_kill_ends_them() -> None:
    study = Study(problem_of(), preset("sweep", timeout="capped"))
    wishes = iter([Wish.RUN, Wish.RUN, Wish.RUN, Wish.KILL])
    executor = Scripted(outcome=lambda number: None)
    explore(study, executor, PretendedClock(), parallel=2, wish=lambda: next(wishes, Wish.KILL))
    assert sorted(executor.cancelled) == ["0", "1"]
    assert [seen.outcome.reason for seen in study.history] == [Reason.USER, Reason.USER]
    assert study.stopped is None  # the worker was stopped, not the study


def test_another_process_can_stop_a_study(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))
        other = continued(storage, "s", problem_of(), preset("sweep"))
        explore(study, Scripted(), PretendedClock(), settled=lambda seen: other.stop("enough for today"))
        assert len(study.history) == 1
        record = storage.load_study("s")
        assert (record.state, study.reason) == ("STOPPED", "enough for today")
        other.resume(add_usd=5.0)
        explore(study, Scripted(), PretendedClock())
        assert len(study.history) > 1
        assert study.budget_usd == 1005.0


def test_more_money_lets_a_study_go_on() -> None:
    study = Study(problem_of(usd=12.0), preset("random", timeout="none"))
    run = Scripted(outcome=lambda number: Outcome(End.FINISHED, 6.0, 6.0))
    explore(study, run, PretendedClock())
    assert (len(study.history), study.stopped and study.stopped.because) == (2, Because.BUDGET)
    study.resume(add_usd=12.0)
    explore(study, run, PretendedClock())
    assert (len(study.history), study.spent_usd) == (4, 24.0)


def test_a_study_of_another_problem_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    space = problem_of().space
    create_study(space=space, constraints=["runtime <= 10m"], policy="sweep", storage=url, study_name="s")
    create_study(
        space=space, constraints=["runtime <= 10m"], policy="sweep", storage=url, study_name="s", load_if_exists=True
    )
    with pytest.raises(InputError, match="is about another problem"):
        create_study(
            space=space, constraints=["runtime <= 9m"], policy="sweep", storage=url, study_name="s", load_if_exists=True
        )
    with pytest.raises(InputError, match="exists already"):
        create_study(space=space, policy="sweep", storage=url, study_name="s")


def test_what_a_person_asks_for_runs_first_also_after_a_restart(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        open_study(storage, "s", problem_of(), preset("sweep")).enqueue_trial({"n": 7})
        again = continued(storage, "s", problem_of(), preset("sweep"))
        trial = again.ask()
        assert trial is not None
        assert (trial.params, trial.why) == ({"n": 7}, "asked for by the user")
        again.tell(trial, runtime=5.0)
        third = continued(storage, "s", problem_of(), preset("sweep"))
        assert third.ask() is not None
        assert third.history[0].order.plan.why == "asked for by the user"


def test_an_import_is_all_or_nothing(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))

        def bring_in() -> None:
            with study.together():
                study.add_trial({"n": 1}, runtime=30.0)
                study.add_trial({"n": 99}, runtime=30.0)

        with pytest.raises(InputError):
            bring_in()
        assert study.history == ()
        study.add_trial({"n": 1}, runtime=30.0)
        assert [seen.outcome.charged_usd for seen in study.history] == [0.0]


def test_a_worker_ends_the_one_run_that_a_person_does_not_want(tmp_path: Path) -> None:
    """The wish comes from another process, by the ledger; what is not unwanted runs on."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = open_study(url, "two", problem_of(), preset("sweep", timeout="capped"))
    person = continued(Storage(url), "two", problem_of(), preset("sweep", timeout="capped"))
    executor = Scripted(outcome=lambda number: None if number == 1 else Outcome(End.FINISHED, 5.0, 5.0))
    wishes = iter([Wish.RUN] * 40 + [Wish.KILL] * 10_000)

    def tick() -> None:
        if any(run.order.number == 1 and not run.unwanted for run in person.open_runs):
            person.stop_trial(1)
        person.refresh()

    explore(study, executor, PretendedClock(), parallel=1, wish=lambda: next(wishes), tick=tick)
    settled = {seen.order.number: seen.outcome.reason for seen in study.history}
    assert settled[1] is Reason.USER
    assert settled[0] is None
    with pytest.raises(InputError, match="stop_trial: trial 1 has been told already"):
        person.stop_trial(1)
