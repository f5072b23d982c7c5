"""Repeated crashes of Lynceus with any executor: it is killed at random moments, and afterwards no process or machine is left running.

After each crash the study is resumed, or its open trials are cancelled, or all its resources are removed. Then no job, actor or process is
left, no job ran twice, and the charges equal what supervisors recorded or the last heartbeats.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crash_worker import executor_of, study_of
from local_runs import eventually, owned_by, processes_below
from lynceus.executors.interface import OwnedResource, ResourceKind, SupportsClose
from lynceus.executors.supervisor import files
from lynceus.storage.sql.storage import Storage

if TYPE_CHECKING:
    from workers import Workers

TRIALS = 8
AFTERWARDS = ("resume", "resume", "resume", "cancel", "remove")


class LeakCampaign:
    """Crashes one study after another, `points` times in all."""

    def __init__(
        self, folder: Path, workers: "Workers", executor: dict[str, Any], *, seed: int, max_delay_s: float
    ) -> None:
        self._folder, self._workers = folder, workers
        self._random = random.Random(seed)
        self._max_delay_s = max_delay_s
        self._task: dict[str, Any] = {
            "url": f"sqlite:///{folder}/s.db",
            "policy": "random",
            "parallel": 3,
            "rows": 40,
            "usd": 200.0,
            "trials": TRIALS,
            "sleep_s": 0.4,
            "executor": executor,
        }
        self._studies = 0
        self.happened: Counter[str] = Counter()
        self.charged_s = 0.0
        """Seconds that were charged in total; each is in the record of a run."""
        self._executor: Any = None
        self._new_study()

    def run(self, points: int) -> None:
        """Crash, clean up and check, many times."""
        try:
            self._run(points)
        finally:
            if isinstance(self._executor, SupportsClose):
                self._executor.close()

    def _run(self, points: int) -> None:
        for point in range(points):
            self._crash()
            afterwards = self._random.choice(AFTERWARDS)
            self.happened[afterwards] += 1
            print(f"crash {point + 1}: {afterwards}", flush=True)
            if afterwards == "remove":
                self._remove_all()
                self._check_nothing_runs()
                self._new_study()
                continue
            wanted = {"drain": True} if afterwards == "resume" else {"kill": True}
            assert self._workers.wait(self._workers.start({**self._task, **wanted})) == 0
            self._check_nothing_runs()
            settled = self._check()
            if settled >= TRIALS:
                self._remove_all()  # it may have been killed after its last trial, before it took warm machines down
                self._close_study()
        # The rest of the last study runs undisturbed: it can still finish.
        assert self._workers.wait(self._workers.start(self._task)) == 0
        self._check_nothing_runs()
        assert self._check() >= 1
        self._close_study()

    def _new_study(self) -> None:
        self._studies += 1
        folder = self._folder / f"study-{self._studies}"
        folder.mkdir()
        self._task |= {"name": f"study-{self._studies}", "folder": str(folder), "seed": self._studies}

    def _close_study(self) -> None:
        with Storage(self._task["url"]) as storage:
            trials = storage.trials(self._task["name"])
        self.happened["trials"] += len(trials)
        self.charged_s += sum(trial.outcome.charged_usd for trial in trials if trial.outcome is not None)
        self._new_study()

    def _crash(self) -> None:
        worker = self._workers.start(self._task)
        time.sleep(self._random.uniform(0.0, self._max_delay_s))
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            self.happened["too late"] += 1
        assert self._workers.wait(worker) in (-signal.SIGKILL, 0)

    def _running(self) -> list[OwnedResource]:
        """What is running of the current study, according to the executor."""
        with Storage(self._task["url"]) as storage:
            study = study_of(self._task, storage)
        if self._executor is None:
            self._executor = executor_of(self._task, study.problem)
        found = owned_by(self._executor)
        return [
            one for one in found if one.identity == study.record.identity and one.kind is not ResourceKind.DIRECTORY
        ]

    def _remove_all(self) -> None:
        """Do what `lynceus gc` does. Repeats, because what was just being started appears a moment later."""
        quiet = 0
        while quiet < 2:
            running = self._running()
            for one in running:
                self._executor.remove(one)
            quiet = 0 if running else quiet + 1
            time.sleep(0.5)

    def _check_nothing_runs(self) -> None:
        eventually(lambda: not processes_below(self._folder))
        eventually(lambda: not self._other_processes())
        eventually(lambda: not [one for one in self._running() if one.number is not None])

    def _other_processes(self) -> list[str]:
        """Processes other than jobs, such as supervisors, that have our folder in their arguments."""
        mine, found = str(self._folder).encode(), []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mine in (words := Path("/proc", name, "cmdline").read_bytes()):
                    found.append(words.decode("utf-8", "replace"))
            except OSError:
                continue
        return found

    def _check(self) -> int:
        """Check the storage; returns the number of trials."""
        with Storage(self._task["url"]) as storage:
            if self._task["name"] not in {record.name for record in storage.studies()}:
                return 0
            trials, events = storage.trials(self._task["name"]), storage.events(self._task["name"])
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert all(trial.outcome is not None for trial in trials)
        folder = Path(self._task["folder"])
        runs = folder / "runs"
        records = {int(path.parent.name): json.loads(path.read_text()) for path in runs.rglob(files.OUTCOME)}
        assert set(records) <= set(range(len(trials)))
        jobs = Counter((folder / "log").read_text().split() if (folder / "log").exists() else [])
        assert set(jobs.values()) <= {1}, "a trial ran twice"
        for trial in trials:
            assert trial.outcome is not None
            record = records.get(trial.number, {})
            ran = record.get("seconds", 0.0) + record.get("stopping_s", 0.0)
            # Executors that start machines record what these cost in addition.
            machines = record.get("extra_s", 0.0)
            assert trial.outcome.charged_usd == pytest.approx(ran + machines, abs=1e-5)
            if str(trial.number) not in jobs:
                assert trial.outcome.charged_usd - machines < 1.0, "a trial that never ran was charged"
        settled = Counter(event.number for event in events if event.kind == "settled")
        assert set(settled.values()) <= {1}
        return len(trials)
