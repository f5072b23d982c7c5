"""Trials in MLflow, Weights & Biases and OpenTelemetry, with the real packages."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import lynceus
from cli_jobs import JOB
from lynceus.cli.app import main
from lynceus.integrations.opentelemetry import TraceTracker, otlp_exporter
from lynceus.integrations.tracking import Trackers
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
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


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector of OTLP over HTTP."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", received
    finally:
        server.shutdown()
        server.server_close()


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
    names = [
        span.name
        for request in received
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]
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
    for _ in range(2):
        log_study(one, uri)
    client = mlflow.MlflowClient(tracking_uri=uri)
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
    written = b"".join(path.read_bytes() for path in (tmp_path / "wandb").rglob("*.wandb"))
    assert b"runtime_s" in written
    assert b"oom" in written
    assert json.dumps(one.trials[0].params["vm"]).encode() in written
