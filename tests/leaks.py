"""A campaign of crashes on any executor: Lynceus is killed at random moments of its studies, and afterwards nothing of ours is alive.

After each crash the study is resumed, or its open trials are ended, or a person gives it up and has everything of it swept away. Then: no
job, actor or process is left, nothing ran twice, and what was charged is what supervisors or last signs of life say, to the second.
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
from local_runs import belongings_of, eventually, processes_below
from lynceus.executor.executor import Belonging
from lynceus.ledger.sql import Storage
from lynceus.supervisor import files

if TYPE_CHECKING:
    from workers import Workers

TRIALS = 8
AFTERWARDS = ("resume", "resume", "resume", "end", "give up")


class LeakCampaign:
    """One study after another, crashed `points` times."""

    def __init__(
        self, folder: Path, workers: "Workers", executor: dict[str, Any], *, seed: int, longest_s: float
    ) -> None:
        self._folder, self._workers = folder, workers
        self._luck = random.Random(seed)
        self._longest_s = longest_s
        self._asked: dict[str, Any] = {
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
        """Seconds that were charged in all, each of them found in a record of a run."""
        self._sweeper: Any = None
        self._new_study()

    def run(self, points: int) -> None:
        """Crash, tidy up, look, again and again."""
        try:
            self._run(points)
        finally:
            if self._sweeper is not None:
                self._sweeper.close()

    def _run(self, points: int) -> None:
        for point in range(points):
            self._crash()
            afterwards = self._luck.choice(AFTERWARDS)
            self.happened[afterwards] += 1
            print(f"crash {point + 1}: {afterwards}", flush=True)
            if afterwards == "give up":
                self._sweep()
                self._nothing_lives()
                self._new_study()
                continue
            wanted = {"drain": True} if afterwards == "resume" else {"kill": True}
            assert self._workers.wait(self._workers.start({**self._asked, **wanted})) == 0
            self._nothing_lives()
            settled = self._check()
            if settled >= TRIALS:
                self._sweep()  # it may have been killed after its last trial and before it gave warm machines back
                self._close_study()
        # The rest of the last study, undisturbed: it can still be brought to its end.
        assert self._workers.wait(self._workers.start(self._asked)) == 0
        self._nothing_lives()
        assert self._check() >= 1
        self._close_study()

    def _new_study(self) -> None:
        self._studies += 1
        folder = self._folder / f"study-{self._studies}"
        folder.mkdir()
        self._asked |= {"name": f"study-{self._studies}", "folder": str(folder), "seed": self._studies}

    def _close_study(self) -> None:
        with Storage(self._asked["url"]) as storage:
            trials = storage.trials(self._asked["name"])
        self.happened["trials"] += len(trials)
        self.charged_s += sum(trial.outcome.charged_usd for trial in trials if trial.outcome is not None)
        self._new_study()

    def _crash(self) -> None:
        worker = self._workers.start(self._asked)
        time.sleep(self._luck.uniform(0.0, self._longest_s))
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            self.happened["came too late"] += 1
        assert self._workers.wait(worker) in (-signal.SIGKILL, 0)

    def _living(self) -> list[Belonging]:
        """What lives of the present study, as the executor itself lists it."""
        study = study_of(self._asked)
        study._ledger._engine.dispose()  # type: ignore[attr-defined]
        if self._sweeper is None:
            self._sweeper = executor_of(self._asked, study.problem)
        found = belongings_of(self._sweeper)
        return [one for one in found if one.identity == study.identity and one.kind != "directory"]

    def _sweep(self) -> None:
        """What `lynceus gc` does for a study that nobody needs. What was just being started appears a moment later."""
        quiet = 0
        while quiet < 2:
            living = self._living()
            for one in living:
                self._sweeper.end(one)
            quiet = 0 if living else quiet + 1
            time.sleep(0.5)

    def _nothing_lives(self) -> None:
        eventually(lambda: not processes_below(self._folder))
        eventually(lambda: not self._named_here())
        eventually(lambda: not [one for one in self._living() if one.number is not None])

    def _named_here(self) -> list[str]:
        """Processes beside the jobs, supervisors for example, that have our folder among their arguments."""
        mine, found = str(self._folder).encode(), []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mine in (words := Path("/proc", name, "cmdline").read_bytes()):
                    found.append(words.decode("utf-8", "replace"))
            except OSError:
                continue
        return found

    def _check(self) -> int:
        """All promises about the storage; returns how many trials there are."""
        with Storage(self._asked["url"]) as storage:
            if self._asked["name"] not in {record.name for record in storage.studies()}:
                return 0
            trials, events = storage.trials(self._asked["name"]), storage.events(self._asked["name"])
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert all(trial.outcome is not None for trial in trials)
        folder = Path(self._asked["folder"])
        runs = folder / "runs"
        told = {int(path.parent.name): json.loads(path.read_text()) for path in runs.rglob(files.OUTCOME)}
        assert set(told) <= set(range(len(trials)))
        deeds = Counter((folder / "deeds").read_text().split() if (folder / "deeds").exists() else [])
        assert set(deeds.values()) <= {1}, "a trial ran twice"
        for trial in trials:
            assert trial.outcome is not None
            ran = told[trial.number]["seconds"] if trial.number in told else 0.0
            # Executors that start machines of their own write down what these cost besides.
            machines = 0.0 if trial.number not in told else told[trial.number].get("extra_s", 0.0)
            assert trial.outcome.charged_usd == pytest.approx(min(ran, trial.order.cap_s) + machines, abs=1e-5)
            if str(trial.number) not in deeds:
                assert trial.outcome.charged_usd - machines < 1.0, "a trial that never ran was charged"
        settled = Counter(event.number for event in events if event.kind == "settled")
        assert set(settled.values()) <= {1}
        return len(trials)
