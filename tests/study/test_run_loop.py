"""The run loop: adopted runs, requested states, failing executors, lost runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.interface import LostRunError, Request
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.create import create_study
from lynceus.study.run_loop import explore
from lynceus.study.runs import TakenOverError
from lynceus.study.stored import continued, open_study
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import StopReason


def problem_of(usd: float = 1000.0) -> Problem:
    space = Space.build([Integer("n", 1, 12)], price=3600.0)
    return Problem(space, constraints=(Constraint.parse("runtime <= 100s"),), budget=Budget(usd=usd))


@dataclass
class ScriptedExecutor:
    """An executor whose launch errors and outcomes are functions of the trial number."""

    outcome: Callable[[int], Outcome | None] = lambda number: Outcome(End.FINISHED, 5.0, 5.0)
    launch_error: Callable[[int], Exception | None] = lambda number: None
    launched: list[int] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def launch(self, request: Request) -> str:
        error = self.launch_error(request.number)
        if error is not None:
            raise error
        self.launched.append(request.number)
        return str(request.number)

    def collect(self, ticket: str) -> Outcome | None:
        if ticket in self.cancelled:
            return Outcome(End.FAILED, 1.0, 1.0, reason=FailureReason.USER)
        return self.outcome(int(ticket))

    def cancel(self, ticket: str) -> None:
        self.cancelled.append(ticket)


def test_a_replay_is_the_same_in_memory_and_in_sqlite(tmp_path: Path) -> None:
    problem = problem_of()
    measurements = Measurements(np.linspace(30.0, 120.0, 12))
    traces = []
    for storage in (None, f"sqlite:///{tmp_path}/s.db"):
        for parallel in (1, 3):
            policy = preset("lynceus-2020", lookahead=0, timeout="tg-first")
            name = f"with {parallel}"
            study = Study(problem, policy) if storage is None else open_study(storage, name, problem, policy)
            clock = SimulatedClock()
            explore(study, TableExecutor(problem, measurements, clock), clock, parallel=parallel)
            traces.append(study.observations)
    assert traces[:2] == traces[2:]


def test_a_new_worker_launches_ordered_trials_and_adopts_running_ones(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        first = open_study(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        orders = [first.runs.order(), first.runs.order()]
        assert all(orders)
        first.runs.launched(1, "1")
        first.runs.release()
        executor = ScriptedExecutor()
        second = continued(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        explore(second, executor, SimulatedClock(), requested_state=lambda: RequestedState.STOP)
        assert executor.launched == [0]
        assert [seen.order.number for seen in second.observations] == [0, 1]


def test_a_launch_error_fails_one_trial() -> None:
    study = Study(problem_of(), preset("sweep"))
    launch_errors: dict[int, Exception] = {
        0: InfrastructureError("no room"),
        1: OSError("too many files"),
        2: InputError("a NUL byte"),
    }
    explore(study, ScriptedExecutor(launch_error=launch_errors.get), SimulatedClock())
    ends = [(seen.outcome.end, seen.outcome.reason, seen.outcome.charged_usd) for seen in study.observations[:4]]
    assert ends[:3] == [
        (End.FAILED, FailureReason.INFRA, 0.0),
        (End.FAILED, FailureReason.INFRA, 0.0),
        (End.FAILED, FailureReason.JOB, 0.0),
    ]
    assert ends[3][0] is End.FINISHED


def test_repeated_launch_errors_pause_the_study() -> None:
    study = Study(problem_of(), preset("sweep"))
    explore(
        study,
        ScriptedExecutor(launch_error=lambda number: InfrastructureError("No space left on device")),
        SimulatedClock(),
    )
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.PAUSED
    assert (
        "the last 5 trials failed (5 infrastructure failures); the last: not started: No space left on device"
        in study.stopped.reason
    )


def test_a_lost_run_is_charged_up_to_its_last_heartbeat(tmp_path: Path) -> None:
    now = [1000.0]

    def lost(number: int) -> Outcome | None:
        if number == 0:
            raise LostRunError("its directory is gone")
        return Outcome(End.FINISHED, 5.0, 5.0)

    with Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: now[0]) as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))
        order = study.runs.order()
        assert order is not None
        study.runs.launched(0, "0")
        now[0] += 30.0
        study.runs.heartbeat([0])
        now[0] += 500.0
        again = continued(storage, "s", problem_of(), preset("sweep"))
        study.runs.release()
        explore(again, ScriptedExecutor(outcome=lost), SimulatedClock(), requested_state=lambda: RequestedState.STOP)
        (seen,) = again.observations
        assert (seen.outcome.reason, seen.outcome.seconds, seen.outcome.charged_usd) == (
            FailureReason.INFRA,
            30.0,
            30.0,
        )


@pytest.mark.parametrize(("ran_s", "charged"), [(None, 1.0), (0.0, 1.0), (0.5, 0.5), (42.0, 42.0), (150.0, 150.0)])
def test_a_lost_run_that_was_launched_is_never_free(ran_s: float | None, charged: float) -> None:
    """It is ended before it settles, and charged for what the executor knows of it, beyond its timeout, too."""

    def lost(number: int) -> Outcome | None:
        if number == 0:
            raise LostRunError("its directory is gone", ran_s)
        return Outcome(End.FINISHED, 5.0, 5.0)

    executor, study = ScriptedExecutor(outcome=lost), Study(problem_of(), preset("sweep", timeout="capped"))
    explore(study, executor, SimulatedClock(), settled=lambda seen: study.stop() if seen.order.number else None)
    first = study.observations[0].outcome
    assert (first.reason, first.charged_usd) == (FailureReason.INFRA, charged)
    assert executor.cancelled == ["0"]
    assert "up to its last sign of life" in first.detail
    assert ("$50.00 more than the $100.00 reserved" in first.detail) == (ran_s == 150.0)


def test_a_lost_run_is_charged_until_we_last_saw_it() -> None:
    clock, looks = SimulatedClock(), iter(range(1, 1000))

    def lost(number: int) -> Outcome | None:
        if number == 0 and next(looks) > 100:
            raise LostRunError("its directory is gone")
        return None if number == 0 else Outcome(End.FINISHED, 5.0, 5.0)

    study = Study(problem_of(), preset("sweep", timeout="capped"), clock=clock)
    explore(study, ScriptedExecutor(outcome=lost), clock, settled=lambda seen: study.stop())
    first = study.observations[0].outcome
    assert 0.2 < first.seconds == first.charged_usd <= clock.now()


def test_a_run_beyond_its_timeout_counts_as_stopped_and_then_nothing_starts() -> None:
    study = Study(problem_of(usd=300.0), preset("sweep", timeout="capped"))
    executor = ScriptedExecutor(outcome=lambda number: Outcome(End.FINISHED, 250.0, 250.0))
    explore(study, executor, SimulatedClock())
    assert [(seen.outcome.end, seen.outcome.seconds) for seen in study.observations] == [(End.TIMEOUT, 250.0)] * 2
    assert study.spent_usd == 500.0
    assert executor.launched == [0, 1]
    detail = "it finished after 4m10s, beyond its timeout of 1m40s, and counts as stopped; it was charged $150.00 more than the $100.00"
    assert study.trials[0].detail.startswith(detail)
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.BUDGET
    assert "trials were charged $350.00 more than was reserved for them" in study.stopped.reason
    with pytest.raises(InputError, match="no trial has kept every constraint"):
        _ = study.best_params


def test_a_run_that_another_worker_took_over_is_left_alone(tmp_path: Path) -> None:
    """It is neither settled nor cancelled by the first worker, whatever its executor says."""
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        first = open_study(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        other = continued(storage, "s", problem_of(), preset("sweep", timeout="capped"))
        executor, clock = ScriptedExecutor(outcome=lambda number: None), SimulatedClock()

        def take_over() -> None:
            if not other.record.open_runs:
                first.runs.release()  # as when its lease has run out
                assert [run.order.number for run in other.runs.adopt()] == [0]
                executor.outcome = lambda number: Outcome(End.FINISHED, 7.0, 7.0)

        requests = iter([RequestedState.RUN] * 2 + [RequestedState.KILL] * 10_000)
        explore(first, executor, clock, tick=take_over, requested_state=lambda: next(requests))
        assert executor.cancelled == []
        assert first.observations == ()
        assert [run.order.number for run in other.record.open_runs] == [0]
        with pytest.raises(TakenOverError, match="trial 0 was taken over by another worker"):
            first.runs.settle(other.pending[0], Outcome(End.FINISHED, 7.0, 7.0))
        explore(other, executor, SimulatedClock(), requested_state=lambda: RequestedState.STOP)
        assert [seen.outcome.seconds for seen in other.observations] == [7.0]


def test_a_run_that_cannot_be_collected_is_one_failed_trial() -> None:
    def unreadable(number: int) -> Outcome | None:
        if number == 1:
            raise ValueError("Expecting value: line 1 column 1")
        if number == 2:
            raise PermissionError("Permission denied")
        return Outcome(End.FINISHED, 5.0, 5.0)

    study = Study(problem_of(), preset("sweep"))
    explore(study, ScriptedExecutor(outcome=unreadable), SimulatedClock())
    reasons = [seen.outcome.reason for seen in study.observations]
    assert reasons[:4] == [None, FailureReason.INFRA, FailureReason.INFRA, None]
    assert len(study.observations) == 14  # twelve rows, two of them twice


def test_kill_cancels_open_runs() -> None:
    study = Study(problem_of(), preset("sweep", timeout="capped"))
    requests = iter([RequestedState.RUN, RequestedState.RUN, RequestedState.RUN, RequestedState.KILL])
    executor = ScriptedExecutor(outcome=lambda number: None)
    explore(study, executor, SimulatedClock(), parallel=2, requested_state=lambda: next(requests, RequestedState.KILL))
    assert sorted(executor.cancelled) == ["0", "1"]
    assert [seen.outcome.reason for seen in study.observations] == [FailureReason.USER, FailureReason.USER]
    assert study.stopped is None  # the worker was stopped, not the study


def test_another_process_can_stop_a_study(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))
        other = continued(storage, "s", problem_of(), preset("sweep"))
        explore(study, ScriptedExecutor(), SimulatedClock(), settled=lambda seen: other.stop("enough for today"))
        assert len(study.observations) == 1
        record = storage.load_study("s")
        assert (record.state, study.reason) == ("STOPPED", "enough for today")
        other.resume(add_usd=5.0)
        explore(study, ScriptedExecutor(), SimulatedClock())
        assert len(study.observations) > 1
        assert study.budget_usd == 1005.0


def test_a_larger_budget_resumes_a_study() -> None:
    study = Study(problem_of(usd=12.0), preset("random", timeout="none"))
    executor = ScriptedExecutor(outcome=lambda number: Outcome(End.FINISHED, 6.0, 6.0))
    explore(study, executor, SimulatedClock())
    assert (len(study.observations), study.stopped and study.stopped.kind) == (2, StopReason.BUDGET)
    study.resume(add_usd=12.0)
    explore(study, executor, SimulatedClock())
    assert (len(study.observations), study.spent_usd) == (4, 24.0)


def test_a_stored_study_of_another_problem_is_rejected(tmp_path: Path) -> None:
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


def test_enqueued_trials_run_first_even_after_a_restart(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        open_study(storage, "s", problem_of(), preset("sweep")).enqueue_trial({"n": 7})
        again = continued(storage, "s", problem_of(), preset("sweep"))
        trial = again.ask()
        assert trial is not None
        assert (trial.params, trial.why) == ({"n": 7}, "asked for by the user")
        again.tell(trial, runtime=5.0)
        third = continued(storage, "s", problem_of(), preset("sweep"))
        assert third.ask() is not None
        assert third.observations[0].order.plan.why == "asked for by the user"


def test_an_import_is_all_or_nothing(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        study = open_study(storage, "s", problem_of(), preset("sweep"))

        def import_trials() -> None:
            with study.journal.exclusive():
                study.add_trial({"n": 1}, runtime=30.0)
                study.add_trial({"n": 99}, runtime=30.0)

        with pytest.raises(InputError):
            import_trials()
        assert study.observations == ()
        study.add_trial({"n": 1}, runtime=30.0)
        assert [seen.outcome.charged_usd for seen in study.observations] == [0.0]


def test_a_worker_cancels_only_the_trial_that_the_user_stopped(tmp_path: Path) -> None:
    """Another process requests the cancellation through the journal; the other trials continue."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = open_study(url, "two", problem_of(), preset("sweep", timeout="capped"))
    user_study = continued(Storage(url), "two", problem_of(), preset("sweep", timeout="capped"))
    executor = ScriptedExecutor(outcome=lambda number: None if number == 1 else Outcome(End.FINISHED, 5.0, 5.0))
    requests = iter([RequestedState.RUN] * 40 + [RequestedState.KILL] * 10_000)

    def tick() -> None:
        if any(run.order.number == 1 and not run.cancel_requested for run in user_study.record.open_runs):
            user_study.stop_trial(1)
        user_study.runs.refresh()

    explore(study, executor, SimulatedClock(), parallel=1, requested_state=lambda: next(requests), tick=tick)
    settled = {seen.order.number: seen.outcome.reason for seen in study.observations}
    assert settled[1] is FailureReason.USER
    assert settled[0] is None
    with pytest.raises(InputError, match="stop_trial: trial 1 has been told already"):
        user_study.stop_trial(1)
