"""A campaign of faults: workers, jobs, supervisors and the database are killed at random moments, then the study is resumed.

After each: no trial is lost, none is run or charged twice, the budget holds, no process is left, and every suggestion is that of a study
which nothing ever disturbed.
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
from lynceus.ledger.records import order_record
from lynceus.ledger.sql import Storage
from lynceus.study import Study
from lynceus.supervisor import files

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


def test_every_seam_of_a_trial(tmp_path: Path, workers: "Workers") -> None:
    """The worker dies exactly between intention and deed, between deed and record, and inside each transaction."""
    campaign = Campaign(tmp_path, workers, f"sqlite:///{tmp_path}/s.db", "random", seed=3, trials=len(MOMENTS))
    campaign.run_seams(MOMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_faults(tmp_path: Path, workers: "Workers", postgres: "Server", part: int) -> None:
    policy, parallel = ("random", 1) if part % 2 else ("lynceus-2020", 2)
    if part < 2:
        campaign = Campaign(tmp_path, workers, f"sqlite:///{tmp_path}/s.db", policy, seed=10 + part, parallel=parallel)
    else:
        url = postgres.database(f"faults-{uuid4().hex}")
        campaign = Campaign(tmp_path, workers, url, policy, seed=10 + part, server=postgres, parallel=parallel)
    campaign.run(50)


class Campaign:
    """One study after another, disturbed `points` times."""

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
        self._luck = random.Random(seed)
        self._asked: dict[str, Any] = {
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
            self._disturb()
            assert self._workers.wait(self._workers.start({**self._asked, "drain": True})) == 0
            if self._check() >= TRIALS:
                self._new_study()
        # The rest of the last study, undisturbed: it can still be brought to its end.
        assert self._workers.wait(self._workers.start(self._asked)) == 0
        assert self._check() >= 1
        assert sum(self._happened.values()) == points

    def run_seams(self, moments: tuple[str, ...]) -> None:
        for moment in moments:
            before = self._check()
            worker = self._workers.start({**self._asked, "die": moment.removesuffix(" with supervisor")})
            assert self._workers.wait(worker) == -signal.SIGKILL
            if moment.endswith("with supervisor"):
                eventually(self._supervisors)
                _kill(self._supervisors())
            assert self._workers.wait(self._workers.start({**self._asked, "drain": True})) == 0
            # An order that was not committed never was; any other is carried out, once.
            assert self._check() - before == (0 if moment == "in order" else 1), moment

    def _new_study(self) -> None:
        self._studies += 1
        folder = self._folder / f"study-{self._studies}"
        folder.mkdir()
        self._asked |= {"name": f"study-{self._studies}", "folder": str(folder), "seed": self._studies}

    def _disturb(self) -> None:
        worker = self._workers.start(self._asked)
        time.sleep(self._luck.uniform(0.0, 0.6))
        fault = self._luck.choice(FAULTS if self._server is not None else FAULTS[:-1])
        self._happened[fault] += 1
        if fault == "database":
            assert self._server is not None
            self._server.kill()
            time.sleep(self._luck.uniform(0.0, 0.2))
            self._server.start()
        if "supervisor" in fault:
            _kill(self._supervisors())
        if fault == "job":
            _kill(processes_below(self._folder))
        if fault in ("job", "supervisor", "database"):
            time.sleep(self._luck.uniform(0.0, 0.3))  # the worker may notice, or not
        _kill({worker})
        assert self._workers.wait(worker) in (-signal.SIGKILL, 0, 4)

    def _supervisors(self) -> set[int]:
        found = set()
        for path in Path(self._asked["folder"]).rglob(files.STARTED):
            if not path.with_name(files.OUTCOME).exists():
                found.add(json.loads(path.read_text())["pid"])
        return found

    def _check(self) -> int:
        """All promises, after a resume that settled what was open; returns how many trials there are."""
        with Storage(self._asked["url"]) as storage:
            if self._asked["name"] not in {record.name for record in storage.studies()}:
                return 0
            trials, events = storage.trials(self._asked["name"]), storage.events(self._asked["name"])
        problem = problem_of(self._asked)
        # Nothing is lost: every number is there, settled; every run that left a trace on the disk is among them.
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert all(trial.outcome is not None for trial in trials)
        folder = Path(self._asked["folder"])
        told = {int(path.parent.name): json.loads(path.read_text()) for path in folder.rglob(files.OUTCOME)}
        assert set(told) == {int(path.parent.name) for path in folder.rglob(files.REQUEST)} <= set(range(len(trials)))
        # Nothing is run twice.
        deeds = Counter((folder / "deeds").read_text().split() if (folder / "deeds").exists() else [])
        assert set(deeds.values()) <= {1}
        # Nothing is charged twice, or for less or more than what really ran.
        for trial in trials:
            assert trial.outcome is not None
            ran = told[trial.number]["seconds"] if trial.number in told else 0.0
            assert trial.outcome.charged_usd == pytest.approx(min(ran, trial.order.cap_s), abs=1e-5)
        settled = Counter(event.number for event in events if event.kind == "settled")
        assert set(settled.values()) <= {1}
        # No process is left, of the job or beside it.
        assert processes_below(self._folder) == set()
        assert self._supervisors() == set()
        self._compare_with_twin(events, {trial.number: trial for trial in trials}, problem.budget.usd)
        return len(trials)

    def _compare_with_twin(self, events: list[Any], trials: dict[int, Any], budget: float) -> None:
        """Every suggestion is that of a study in memory that lived through the same outcomes; the budget held at every instant."""
        disturbed = study_of(self._asked)
        twin = Study(disturbed.problem, disturbed.policy, seed=self._asked["seed"])
        for event in events:
            if event.kind == "ordered":
                order = twin.order(slots=self._asked["parallel"] - len(twin.pending))
                assert order is not None
                assert order_record(order) == order_record(trials[event.number].order)
            elif event.kind == "settled":
                order = next(one for one in twin.pending if one.number == event.number)
                twin.settle(order, trials[event.number].outcome)
            assert twin.spent_usd + twin.reserved_usd <= budget * (1 + 1e-9)
        following = disturbed._step()
        expected = twin._step()
        assert type(following) is type(expected)
        assert str(following) == str(expected)
        disturbed._ledger._engine.dispose()  # type: ignore[attr-defined]


def _kill(processes: set[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
