"""One decider: in sixty random states every place that says what runs next names what `ask` orders then."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboards import dashboard
from lynceus.analysis.documents.insight import insight_document
from lynceus.cli.app import main
from lynceus.executors.interface import WallClock
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import OpenStudy, create_or_open, open_record
from lynceus.library.study_context import study_context
from lynceus.reports.page import report_documents
from lynceus.storage.memory import MemoryJournal
from lynceus.storage.sql.storage import Storage
from lynceus.study.study import Study
from lynceus.trial.order import Order, Purpose
from lynceus.trial.stop import Stopped
from lynceus.trial.trial import Trial

STATES = 60
JOB = """\
name: state-{number}
run: "true"
resources: {{infra: aws/us-east-1, instance_type: [c5.large, m5.large], use_spot: [true, false], spot: {{rate_per_hour: 0.5}}}}
space: {{level: {{int: [1, 6]}}}}
constraints: ["runtime <= 20m"]
budget: {{cost: {budget} USD, max_trials: {trials}, wall_clock: 2h}}
policy: {policy}
seed: {number}
trial:
  parallel: {parallel}
  confirm_best: {confirm}
  max_failures: {failures}
  retries: {{infra: 1, job: {retries}, preempted: 1}}
"""

Next = tuple[int, dict[str, object], float | None, float | None] | str


class RandomStudy:
    """A study driven to a random state: queue, failures, interruptions, confirmations, open trials, time, stops."""

    def __init__(self, number: int, folder: Path, url: str) -> None:
        self.random = random.Random(number)
        choice = self.random.choice
        file = folder / f"{number}.yaml"
        file.write_text(
            JOB.format(
                number=number,
                budget=choice([0.05, 0.3, 2]),
                trials=choice([6, 12, 40]),
                policy=choice(["lynceus", "lynceus-2020", "bo", "random+timeouts", "sweep"]),
                parallel=choice([1, 1, 3]),
                confirm=choice([0, 2]),
                failures=choice([3, 9]),
                retries=choice([0, 1]),
            )
        )
        self.url, self.opened = url, create_or_open(prepare_file(str(file)), url)
        self.now = self.opened.record.created_s
        self.open: list[Trial] = []

    def drive(self) -> None:
        """Some asks, tells and requests; the journal's clock runs with them."""
        study = self.opened.study
        study.journal._now = lambda: self.now  # type: ignore[attr-defined]
        for _ in range(self.random.randrange(1, 16)):
            if self.random.random() < 0.2:
                study.enqueue_trial(study.problem.space.point(self.random.randrange(len(study.problem.space))))
            if len(self.open) < study.retry_rules.parallel and (trial := study.ask()) is not None:
                self.open.append(trial)
            if self.open and self.random.random() < 0.8:
                self._tell(study, self.open.pop(self.random.randrange(len(self.open))))
            if self.random.random() < 0.04:
                study.stop(kill=self.random.random() < 0.5)
            if study.stopped is not None and self.random.random() < 0.5:
                study.resume(add_usd=self.random.choice([0.0, 0.2]))

    def _tell(self, study: Study, trial: Trial) -> None:
        level = trial.params["level"]
        assert isinstance(level, int)
        seconds = (200.0 + 150.0 * abs(level - 4)) * math.exp(self.random.gauss(0.0, 0.2))
        self.now += min(seconds, 50.0)
        study.journal.heartbeat([])
        failure = self.random.choice([None, None, None, "preempted", "preempted", "infra", "oom", "job"])
        if failure is not None:
            study.tell(trial, runtime=min(seconds, trial.timeout or seconds) / 2, state="FAIL", reason=failure)
        elif trial.timeout is not None and seconds >= trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)


def of_decision(one: OpenStudy, decision: Order | Stopped) -> Next:
    if isinstance(decision, Stopped):
        return decision.reason
    params = dict(one.study.problem.space.point(decision.row))
    return decision.number, params, finite(decision.timeout_s), finite(decision.reserved_usd)


def of_document(document: dict[str, Any]) -> Next:
    trial = document["next"]["trial"]
    if trial is None:
        return str(document["next"]["reason"])
    return trial["number"], trial["params"], trial["timeout_s"], trial["reserved_usd"]


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("states")
    url = f"sqlite:///{folder}/lynceus.db"
    for number in range(STATES):
        RandomStudy(number, folder, url).drive()
    return url, folder


def asked(url: str) -> dict[str, tuple[Next, Order | Stopped]]:
    """What `ask` does in every study, each in a journal of its own in memory, as replays and the demo do it."""
    found: dict[str, tuple[Next, Order | Stopped]] = {}
    with Storage(url, create=False) as storage:
        for record in storage.studies():
            one = open_record(storage, record)
            study = Study(
                one.study.problem,
                one.study.policy,
                seed=one.study.seed,
                journal=MemoryJournal(one.study.record),
                clock=WallClock(),
                retry_rules=one.study.retry_rules,
            )
            order = study.runs.order()
            decision = order if order is not None else study.next_step().decision
            found[record.name] = (of_decision(one, decision), decision)
    return found


def test_the_random_states_are_of_every_kind(states: tuple[str, Path]) -> None:
    decisions = [decision for _, decision in asked(states[0]).values()]
    purposes = {decision.plan.purpose for decision in decisions if isinstance(decision, Order)}
    assert purposes >= {Purpose.SEARCH, Purpose.QUEUE, Purpose.MOVE, Purpose.CONFIRM}
    assert len({decision.kind for decision in decisions if isinstance(decision, Stopped)}) >= 3
    with Storage(states[0], create=False) as storage:
        records = [storage.journal(one.name).record for one in storage.studies()]
    assert sum(bool(record.open_runs) for record in records) >= 5


def test_every_reader_names_what_ask_orders(
    states: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, folder = states
    expected = asked(url)
    with dashboard(url, folder) as server:
        api = {name: server.get(f"studies/{name}/explain").json for name in expected}
        page = {name: server.get(f"studies/{name}/insight").json for name in expected}
    with Storage(url, create=False) as storage:
        for name, (wanted, _) in expected.items():
            one = open_record(storage, storage.load_study(name))
            subject = study_context(one)
            monkeypatch.setattr(sys, "argv", ["lynceus", "explain", name, "--storage", url, "-o", "json"])
            with pytest.raises(SystemExit):
                main()
            said = {
                "view": of_decision(one, one.study.snapshot().next_step().decision),
                "command line": of_document(json.loads(capsys.readouterr().out)),
                "page document": of_document(insight_document(subject)),
                "report": of_document(report_documents(subject)["insight"]),
                "API": of_document(api[name]),
                "page": of_document(page[name]),
            }
            trial = one.study.ask()  # the last: it changes the study
            assert said == dict.fromkeys(said, wanted), name
            if trial is None:
                assert one.study.reason == wanted
            else:
                assert (trial.number, dict(trial.params), trial.timeout) == wanted[:3]
