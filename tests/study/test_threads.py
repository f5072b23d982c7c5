"""One `Study` in many threads, and in a forked child."""

import math
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import QueuePool

from lynceus.errors import InputError
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage import forks
from lynceus.storage.sql.journal import SqlJournal
from lynceus.storage.sql.storage import Storage
from lynceus.study.stored import open_study
from lynceus.study.study import Study

THREADS = 8
PATIENCE_S = 60.0


def problem_of(usd: float = 12.0) -> Problem:
    """One dollar a second, at most one second each: the budget pays for a dozen runs."""
    space = Space.build([Integer("n", 1, 64)], price=3600.0)
    return Problem(space, Objective.parse("cost"), (Constraint.parse("runtime <= 1s"),), Budget(usd=usd))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[Problem], Study]]:
    policy = preset("random", timeout="capped")
    if request.param == "memory":
        yield lambda problem: Study(problem, policy)
        return
    url = f"sqlite:///{tmp_path}/studies.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").database(f"test-{uuid4().hex}")
    with Storage(url) as storage:
        yield lambda problem: open_study(storage, "shared", problem, policy)


@pytest.fixture
def study(make: Callable[[Problem], Study]) -> Study:
    return make(problem_of())


def in_threads(work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []
    together = threading.Barrier(THREADS)

    def guarded(number: int) -> None:
        together.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert not errors, errors


def test_a_trial_is_given_out_once_and_the_budget_holds(study: Study) -> None:
    asked: list[int] = []
    seen: list[float] = []

    def work(number: int) -> None:
        while (trial := study.ask()) is not None:
            asked.append(trial.number)
            record = study.record
            seen.append(record.spent_usd + record.reserved_usd)
            assert study.snapshot().record.started >= trial.number + 1
            needed = 0.25 + number / 16
            late = trial.timeout is not None and needed > trial.timeout
            study.tell(trial, runtime=trial.timeout if late else needed, state="TIMEOUT" if late else "COMPLETE")

    in_threads(work)
    assert max(Counter(asked).values()) == 1
    assert sorted(asked) == list(range(len(asked))) == [trial.number for trial in study.trials]
    assert max(seen) <= 12.0 + 1e-9
    assert study.spent_usd == pytest.approx(sum(one.outcome.charged_usd for one in study.observations))
    assert len({one.order.number for one in study.observations}) == len(study.observations)


def test_enqueued_trials_run_once_each(make: Callable[[Problem], Study]) -> None:
    study = make(problem_of(math.inf))
    in_threads(lambda number: study.enqueue_trial({"n": number + 1}))
    assert sorted(study.record.queue) == list(range(THREADS))
    rows: list[int] = []

    def work(_: int) -> None:
        trial = study.ask()
        assert trial is not None
        rows.append(int(trial.params["n"]))  # type: ignore[call-overload]
        study.tell(trial, runtime=0.5)

    in_threads(work)
    assert sorted(rows) == list(range(1, THREADS + 1))
    assert study.record.queue == ()


def test_threads_that_stop_a_study_stop_it_once(study: Study) -> None:
    def work(number: int) -> None:
        if number % 2:
            study.stop("enough")
        else:
            study.ask()

    in_threads(work)
    assert study.reason == "enough"
    assert study.ask() is None


def test_a_reader_does_not_wait_for_a_decision(study: Study) -> None:
    reading = threading.Event()
    with study.journal.exclusive():
        study.enqueue_trial({"n": 3})
        thread = threading.Thread(target=lambda: study.record and study.snapshot() and reading.set())
        thread.start()
        assert reading.wait(PATIENCE_S)
        thread.join()


def test_a_forked_child_goes_on_with_connections_of_its_own(study: Study) -> None:
    """Parent and child ask in turn; neither breaks the other's connection, and no trial is given out twice."""
    stored = isinstance(study.journal, SqlJournal)
    first = study.ask()
    assert first is not None
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if isinstance(study.journal, SqlJournal):
                pool = study.journal._engine.pool
                assert isinstance(pool, QueuePool)
                assert pool.checkedin() == 0  # none of the parent's connections
            trial = study.ask()
            assert trial is not None
            os.write(write, str(trial.number).encode())
            study.tell(trial, runtime=0.5)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    asked = os.read(read, 10).decode()
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asked == "1"
    study.tell(first, runtime=0.5)
    second = study.ask()
    assert second is not None
    assert second.number == (2 if stored else 1)  # what is in memory is in each process its own


def test_children_that_are_forked_while_threads_work_are_not_blocked(make: Callable[[Problem], Study]) -> None:
    """A fork waits until no thread is inside the journal: a child would inherit locks of SQLite, and wait for ever."""
    study = make(problem_of(usd=1000.0))
    over = threading.Event()

    def work(rounds: int) -> None:
        for _ in range(rounds):
            if over.is_set() or (trial := study.ask()) is None:
                return
            study.tell(trial, runtime=0.01)

    threads = [threading.Thread(target=work, args=(1000,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            signal.alarm(int(PATIENCE_S))  # ends the child if it hangs
            work(2)
            os._exit(0)
        children.append(child)
        time.sleep(0.02)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    over.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 6


def test_a_child_that_is_forked_while_a_thread_holds_the_lock_is_not_blocked(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_PATIENCE_S", 0.1)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with study.journal.exclusive():
            held.set()
            done.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(PATIENCE_S)
    child = os.fork()
    if child == 0:
        os._exit(0 if study.record.started == 0 and study.snapshot().trials == [] else 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert study.ask() is not None


def test_a_database_in_memory_is_refused_to_other_threads() -> None:
    storage = Storage("sqlite://")
    failures: list[str] = []

    def work() -> None:
        with pytest.raises(InputError) as raised:
            storage.studies()
        failures.append(str(raised.value))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == [
        "storage sqlite://: a database in memory belongs to one thread; name a file, or use a study in memory."
    ]
    assert storage.studies() == []
