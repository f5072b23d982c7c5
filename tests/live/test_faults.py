"""Fault injection: workers, jobs, supervisors and the database are killed at random moments, then the study is resumed.

Afterwards no trial is lost, run twice or charged twice, the budget holds, no process is left, and every suggestion is that of an
undisturbed study.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from crash_worker import problem_of, study_of
from local_runs import eventually, processes_below
from lynceus.executors.supervisor import files
from lynceus.storage.serialization import order_record
from lynceus.storage.sql.storage import Storage
from lynceus.study.study import Study

if TYPE_CHECKING:
    from postgres import Server
    from workers import Workers

TRIALS = 8
FAULTS = ("worker", "job", "supervisor", "worker and supervisor", "database")


@pytest.mark.parametrize("policy", ["random", "lynceus-2020"])
def test_a_few_faults_on_sqlite(tmp_path: Path, workers: "Workers", policy: str) -> None:
    Campaign(tmp_path, workers, f"sqlite:///{tmp_path}/s.db", policy, seed=1).run(6)


def test_a_few_faults_on_postgresql(tmp_path: Path, workers: "Workers", postgres: "Server") -> None:
    url = postgres.database(f"faults-{uuid4().hex}")
    Campaign(tmp_path, workers, url, "lynceus-2020", seed=2, server=postgres, parallel=2).run(8)


MOMENTS = (
    "in order",
    "before launch",
    "after launch",
    "after launch with supervisor",
    "before launched",
    "in launched",
    "after launched",
    "before settle",
    "in settle",
    "after settle",
)


def test_a_crash_at_every_step_of_a_trial(tmp_path: Path, workers: "Workers") -> None:
    """The worker dies between every two steps of a trial, and inside each transaction."""
    campaign = Campaign(tmp_path, workers, f"sqlite:///{tmp_path}/s.db", "random", seed=3, trials=len(MOMENTS))
    campaign.run_moments(MOMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_200_faults(tmp_path: Path, workers: "Workers", postgres: "Server", part: int) -> None:
    policy, parallel = ("random", 1) if part % 2 else ("lynceus-2020", 2)
    if part < 2:
        campaign = Campaign(tmp_path, workers, f"sqlite:///{tmp_path}/s.db", policy, seed=10 + part, parallel=parallel)
    else:
        url = postgres.database(f"faults-{uuid4().hex}")
        campaign = Campaign(tmp_path, workers, url, policy, seed=10 + part, server=postgres, parallel=parallel)
    campaign.run(50)


class Campaign:
    """Injects faults into one study after another, `points` in all."""

    def __init__(
        self,
        folder: Path,
        workers: "Workers",
        url: str,
        policy: str,
        *,
        seed: int,
        server: "Server | None" = None,
        parallel: int = 1,
        trials: int = TRIALS,
    ) -> None:
        self._folder, self._workers, self._server = folder, workers, server
        self._random = random.Random(seed)
        self._task: dict[str, Any] = {
            "url": url,
            "policy": policy,
            "parallel": parallel,
            "rows": 40,
            "usd": 60.0,
            "trials": trials,
            "sleep_s": 0.15,
        }
        self._studies = 0
        self._happened: Counter[str] = Counter()
        self._new_study()

    def run(self, points: int) -> None:
        for _ in range(points):
            self._inject_fault()
            assert self._workers.wait(self._workers.start({**self._task, "drain": True})) == 0
            if self._check() >= TRIALS:
                self._new_study()
        # The rest of the last study runs undisturbed: it can still finish.
        assert self._workers.wait(self._workers.start(self._task)) == 0
        assert self._check() >= 1
        assert sum(self._happened.values()) == points

    def run_moments(self, moments: tuple[str, ...]) -> None:
        for moment in moments:
            before = self._check()
            worker = self._workers.start({**self._task, "die": moment.removesuffix(" with supervisor")})
            assert self._workers.wait(worker) == -signal.SIGKILL
            if moment.endswith("with supervisor"):
                eventually(self._supervisors)
                _kill(self._supervisors())
            assert self._workers.wait(self._workers.start({**self._task, "drain": True})) == 0
            # An order that was not committed does not exist; any other is carried out once.
            assert self._check() - before == (0 if moment == "in order" else 1), moment

    def _new_study(self) -> None:
        self._studies += 1
        folder = self._folder / f"study-{self._studies}"
        folder.mkdir()
        self._task |= {"name": f"study-{self._studies}", "folder": str(folder), "seed": self._studies}

    def _inject_fault(self) -> None:
        worker = self._workers.start(self._task)
        time.sleep(self._random.uniform(0.0, 0.6))
        fault = self._random.choice(FAULTS if self._server is not None else FAULTS[:-1])
        self._happened[fault] += 1
        if fault == "database":
            assert self._server is not None
            self._server.kill()
            time.sleep(self._random.uniform(0.0, 0.2))
            self._server.start()
        if "supervisor" in fault:
            _kill(self._supervisors())
        if fault == "job":
            _kill(processes_below(self._folder))
        if fault in ("job", "supervisor", "database"):
            time.sleep(self._random.uniform(0.0, 0.3))  # the worker may or may not notice
        _kill({worker})
        assert self._workers.wait(worker) in (-signal.SIGKILL, 0, 4)

    def _supervisors(self) -> set[int]:
        found = set()
        for path in Path(self._task["folder"]).rglob(files.STARTED):
            if not path.with_name(files.OUTCOME).exists():
                found.add(json.loads(path.read_text())["pid"])
        return found

    def _check(self) -> int:
        """Check the storage and the run directories when no trial is open; returns the number of trials."""
        with Storage(self._task["url"]) as storage:
            if self._task["name"] not in {record.name for record in storage.studies()}:
                return 0
            trials, events = storage.trials(self._task["name"]), storage.events(self._task["name"])
        problem = problem_of(self._task)
        # No trial is lost: every number exists and has settled, and so has every run that has a directory.
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert all(trial.outcome is not None for trial in trials)
        folder = Path(self._task["folder"])
        records = {int(path.parent.name): json.loads(path.read_text()) for path in folder.rglob(files.OUTCOME)}
        assert (
            set(records) == {int(path.parent.name) for path in folder.rglob(files.REQUEST)} <= set(range(len(trials)))
        )
        # No job ran twice.
        jobs = Counter((folder / "log").read_text().split() if (folder / "log").exists() else [])
        assert set(jobs.values()) <= {1}
        # Every trial is charged for the time that it ran, once.
        for trial in trials:
            assert trial.outcome is not None
            ran = records[trial.number]["seconds"] if trial.number in records else 0.0
            assert trial.outcome.charged_usd == pytest.approx(min(ran, trial.order.timeout_s), abs=1e-5)
        settled = Counter(event.number for event in events if event.kind == "settled")
        assert set(settled.values()) <= {1}
        # No process is left, neither of jobs nor of supervisors.
        assert processes_below(self._folder) == set()
        assert self._supervisors() == set()
        self._compare_with_twin(events, {trial.number: trial for trial in trials}, problem.budget.usd)
        return len(trials)

    def _compare_with_twin(self, events: list[Any], trials: dict[int, Any], budget: float) -> None:
        """Every suggestion is that of a study in memory with the same outcomes, and the budget was never exceeded."""
        with Storage(self._task["url"]) as storage:
            disturbed = study_of(self._task, storage)
            problem, policy = disturbed.problem, disturbed.policy
            decision = disturbed.next_step().decision  # it reads shared budgets
        twin = Study(problem, policy, seed=self._task["seed"])
        for event in events:
            if event.kind == "ordered":
                order = twin.runs.order(slots=self._task["parallel"] - len(twin.pending))
                assert order is not None
                assert order_record(order) == order_record(trials[event.number].order)
            elif event.kind == "settled":
                order = next(one for one in twin.pending if one.number == event.number)
                twin.runs.settle(order, trials[event.number].outcome)
            assert twin.spent_usd + twin.reserved_usd <= budget * (1 + 1e-9)
        expected = twin.next_step().decision
        assert type(decision) is type(expected)
        assert str(decision) == str(expected)


def _kill(processes: set[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
