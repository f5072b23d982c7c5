"""Trials in MLflow, Weights & Biases and OpenTelemetry, with the real packages."""

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import lynceus
from cli_jobs import JOB
from local_runs import eventually
from lynceus.cli import worker
from lynceus.cli.app import main
from lynceus.cli.output import Output
from lynceus.errors import InfrastructureError, InputError
from lynceus.integrations.opentelemetry import TraceTracker, otlp_exporter
from lynceus.integrations.tracking import Trackers
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import create_or_open
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from otlp_collector import collector, span_names
from told_times import seconds_of, study


def told_study() -> lynceus.Study:
    """A finished, a stopped and a failed run, among others."""
    one = study()
    for number in range(6):
        trial = one.ask()
        assert trial is not None
        if number == 1:
            one.tell(trial, runtime=5.0, state="FAIL", reason="oom", detail="exit code 137")
        else:
            seconds = seconds_of(trial.params)
            late = trial.timeout is not None and seconds >= trial.timeout
            one.tell(trial, runtime=min(seconds, trial.timeout or seconds), state="TIMEOUT" if late else "COMPLETE")
    return one


def test_a_trace_tells_the_way_of_a_trial() -> None:
    one = told_study()
    with collector() as (endpoint, received):
        tracker = TraceTracker(otlp_exporter(endpoint))
        for seen in one.observations:
            at = (seen.started_s or 0.0) - 1.0
            tracker.ordered(one, seen.order, at, 0.25)
            tracker.settled(one, seen, (seen.ended_s or 0.0) + 0.5)
        tracker.close()
    spans = [
        span
        for request in received
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]
    roots = [span for span in spans if not span.parent_span_id]
    assert len(roots) == 6
    assert len({span.trace_id for span in roots}) == 6
    for root in roots:
        children = [span for span in spans if span.parent_span_id == root.span_id]
        assert [span.name for span in children] == ["decide", "launch", "wait for a machine", "run"]
        assert children[0].end_time_unix_nano - children[0].start_time_unix_nano == pytest.approx(0.25e9, rel=1e-6)
        for span in children:
            assert (
                root.start_time_unix_nano
                <= span.start_time_unix_nano
                <= span.end_time_unix_nano
                <= root.end_time_unix_nano
            )
        for before, after in itertools.pairwise(children):
            assert before.end_time_unix_nano <= after.start_time_unix_nano + 1000
    failed = next(span for span in roots if span.name.endswith("trial 1"))
    assert failed.status.message == "exit code 137"
    attributes = {one.key: one.value for one in failed.attributes}
    assert attributes["lynceus.reason"].string_value == "oom"
    assert attributes["lynceus.params.nodes"].int_value == one.trials[1].params["nodes"]


def test_lynceus_run_sends_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
    with collector() as (endpoint, received):
        (tmp_path / "job.yaml").write_text(JOB + f"tracking: {{opentelemetry: '{endpoint}'}}\n")
        monkeypatch.setattr("sys.argv", ["lynceus", "run", "job.yaml", "-y"])
        with pytest.raises(SystemExit):
            main()
    names = span_names(received)
    assert sum(name.startswith("toy trial") for name in names) == 6
    assert names.count("decide") == names.count("run") == 6


def test_a_tracker_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
            raise ConnectionError("no server")

        def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
            raise ConnectionError("no server")

        def close(self) -> None:
            raise ConnectionError("no server")

    one = told_study()
    trackers = Trackers([Broken()])
    for seen in one.observations:
        trackers.settled(one, seen, 0.0)
    trackers.close()
    assert [record.message for record in caplog.records] == ["Broken: trials are not logged: no server"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_every_trial_once(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed; make test-all installs it")
    from lynceus.integrations.mlflow import log_study

    one, uri = told_study(), f"sqlite:///{tmp_path}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=uri)
    # A worker was killed while it logged the first trial.
    tags = {"lynceus.trial": "0", "lynceus.study": one.record.identity}
    client.create_run(client.create_experiment("study"), 0, tags, "begun")
    for _ in range(2):
        log_study(one, uri)
    experiment = client.get_experiment_by_name("study")
    runs = sorted(client.search_runs([experiment.experiment_id]), key=lambda run: int(run.data.tags["lynceus.trial"]))
    status = {"COMPLETE": "FINISHED", "TIMEOUT": "KILLED", "FAIL": "FAILED"}
    assert [run.info.status for run in runs] == [status[str(trial.state)] for trial in one.trials]
    for run, trial in zip(runs, one.trials, strict=True):
        assert run.data.params == {name: str(value) for name, value in trial.params.items()}
        assert run.data.metrics["runtime_s"] == trial.runtime_s
        assert run.data.metrics["charged_usd"] == pytest.approx(trial.charged_usd)
    assert runs[1].data.tags["lynceus.reason"] == "oom"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_every_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases is not installed; make test-all installs it")
    from lynceus.integrations.wandb import WandbTracker

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    one = told_study()
    tracker = WandbTracker("tuning")
    for seen in one.observations[:2]:
        tracker.settled(one, seen, seen.ended_s or 0.0)
    runs = sorted((tmp_path / "wandb").glob("offline-run-*"))
    assert len(runs) == 2
    assert {run.name.rpartition("-")[2] for run in runs} == {"0", "1"}

    def written() -> bytes:
        return b"".join(path.read_bytes() for path in (tmp_path / "wandb").rglob("*.wandb"))

    wanted = (b"runtime_s", b"oom", json.dumps(one.trials[0].params["vm"]).encode())
    eventually(lambda: all(text in written() for text in wanted))  # W&B's service writes a little after a run has ended


def test_trials_are_logged_although_the_worker_cannot_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage is gone, or the user leaves: what has ended is not forgotten."""
    logged: list[int] = []

    class Slow:
        def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
            pass

        def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
            begun.wait(5.0)
            logged.append(seen.order.number)

        def close(self) -> None:
            pass

    begun, told = threading.Event(), told_study()

    def run_trials(*given: Any) -> None:
        for seen in told.observations[:3]:
            given[-1].trackers.settled(told, seen, 0.0)
        begun.set()
        raise InfrastructureError("the disk is full")

    monkeypatch.setattr(worker, "trackers_of", lambda section: Trackers([Slow()]))
    monkeypatch.setattr(worker, "_run_trials", run_trials)
    (tmp_path / "job.yaml").write_text(JOB)
    one = create_or_open(prepare_file(tmp_path / "job.yaml"), f"sqlite:///{tmp_path}/s.db")
    with pytest.raises(InfrastructureError, match="the disk is full"):
        worker.work(one, 1, Output.TABLE)
    assert logged == [0, 1, 2]


@pytest.mark.parametrize("tool", ["mlflow", "opentelemetry"])
def test_passwords_are_refused_and_not_repeated(tool: str) -> None:
    """The job file is stored with the study, and storages have many readers."""
    with pytest.raises(InputError, match=rf"tracking\.{tool}: the address has a password") as refused:
        Job.parse(
            "name: a\nrun: 'true'\nspace: {n: [1]}\nbudget: 1\n"
            f"tracking: {{{tool}: 'https://ana:hunter2@tracker.example.org/x'}}\n"
        )
    assert "hunter2" not in str(refused.value)
