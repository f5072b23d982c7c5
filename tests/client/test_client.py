"""The client against a real server: the interface of a local study, and retries."""

import inspect
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lynceus
from dashboards import JOB, READ, WRITE, Dashboard, dashboard, served
from lynceus.client.http import Http
from lynceus.client.remote import RemoteRuns
from lynceus.errors import InfrastructureError, InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.study.runs import StudyRuns
from lynceus.trial.record import RequestedState
from ports import free_ports


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("client")
    with served(f"sqlite:///{folder}/s.db", folder, read=READ) as running:
        yield running


@pytest.fixture
def client(server: Dashboard) -> lynceus.Client:
    return lynceus.Client(server.url, WRITE, patience_s=20.0)


def seconds_of(trial: lynceus.Trial) -> float:
    """The time of a run; like a job, it is stopped at its timeout."""
    seconds = 400 / float(str(trial.params["n"])) + (50 if trial.params["mode"] == "a" else 10)
    return min(seconds, trial.timeout or seconds)


def test_a_remote_study_ends_as_a_local_one_does(client: lynceus.Client) -> None:
    changes = {"name": "same", "policy": "lynceus", "trial": {}}
    remote = client.create_study(JOB | changes)
    job = Job.parse(json.dumps(JOB | changes | {"run": "true"}))
    prepared = prepare(job)
    local = lynceus.Study(prepared.problem, prepared.policy, retry_rules=prepared.retry_rules)
    for study in (local, remote):
        study.optimize(seconds_of)
    assert remote.best_params == local.best_params
    assert remote.best_value == pytest.approx(local.best_value)
    assert remote.best_trial == local.best_trial
    assert remote.trials == local.trials
    assert remote.reason == local.reason
    assert remote.spent_usd == pytest.approx(local.spent_usd)
    assert remote.budget_usd == local.budget_usd
    assert remote.reserved_usd == local.reserved_usd == 0
    advice, recommended = local.recommend(), remote.recommend()
    assert advice is not None
    assert recommended is not None
    assert recommended["params"] == advice.params


def test_the_interface_is_that_of_a_local_study() -> None:
    names = [
        "ask", "tell", "optimize", "enqueue_trial", "add_trial", "add_trials", "stop", "stop_trial", "resume",
        "reason", "best_params", "best_value", "best_trial", "trials", "budget_usd", "spent_usd", "reserved_usd", "runs",
    ]  # fmt: skip
    for name in names:
        local, remote = getattr(lynceus.Study, name), getattr(lynceus.RemoteStudy, name)
        assert isinstance(local, property) == isinstance(remote, property), name
        if not isinstance(local, property):
            assert inspect.signature(local) == inspect.signature(remote), name
    assert inspect.signature(StudyRuns.heartbeat) == inspect.signature(RemoteRuns.heartbeat)


def test_control(client: lynceus.Client) -> None:
    study = client.create_study(JOB | {"name": "steered"})
    study.enqueue_trial({"n": 8, "mode": "b"})
    study.add_trial({"n": 1, "mode": "a"}, runtime="7m")
    trial = study.ask()
    assert trial is not None
    assert trial.params == {"n": 8, "mode": "b"}
    assert study.runs.heartbeat([trial.number]) is RequestedState.RUN
    study.stop_trial(trial)
    assert study.runs.heartbeat([trial.number]) is RequestedState.KILL
    study.tell(trial, state="FAIL", reason=lynceus.FailureReason.USER, runtime=4, loss=0.5, detail="stopped on request")
    failed = next(one for one in study.trials if one.number == trial.number)
    assert (failed.state, failed.reason, failed.metrics) == ("FAIL", "user", {"loss": 0.5})
    study.stop("enough")
    assert study.reason == "enough"
    study.resume(5.0)
    assert study.reason is None
    assert study.budget_usd == 505.0
    assert study.explain()["importance"] is not None
    assert len(study.what_if(deadline="1m,2m")["answers"]) == 3
    assert {one["name"] for one in client.studies()} >= {"steered"}


def test_errors_are_sentences(server: Dashboard, client: lynceus.Client, tmp_path: Path) -> None:
    study = client.create_study(JOB | {"name": "mistaken"})
    with pytest.raises(InputError, match="no trial has kept every constraint yet"):
        _ = study.best_value
    with pytest.raises(InputError, match="has no trial 7"):
        study.tell(7, runtime=5)
    with pytest.raises(InputError, match="There is no study 'unknown'"):
        client.study("unknown")
    with pytest.raises(InputError, match="exists already"):
        client.create_study(JOB | {"name": "mistaken"})
    with pytest.raises(InputError, match=r"The token is wrong, or was revoked\."):
        lynceus.Client(server.url, "wrong-token-0123456789").studies()
    with pytest.raises(
        InputError, match="needs the role runner, and you have the role viewer: send the write token or"
    ):
        lynceus.Client(server.url, READ).study("mistaken").ask()
    with pytest.raises(InputError, match="write http://host:8080"):
        lynceus.Client("localhost:8080")
    with pytest.raises(InputError, match="cannot be read"):
        client.create_study(tmp_path / "nowhere.yaml")
    with pytest.raises(InputError, match="it must return 'runtime'"):
        study.optimize(lambda trial: {"loss": 1.0})
    assert [(trial.state, trial.reason) for trial in study.trials] == [("FAIL", "job")]


def test_a_job_file_makes_a_study(client: lynceus.Client, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: of-a-file\nspace: {n: [1, 2]}\nprice: n\nbudget: 5 USD\n")
    assert client.create_study(file).name == "of-a-file"
    assert client.create_study(file.read_text().replace("of-a-file", "of-a-text")).name == "of-a-text"


def test_tokens_are_not_shown(server: Dashboard, client: lynceus.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    study = client.create_study(JOB | {"name": "shown"})
    assert WRITE not in repr(client) + repr(study) + repr(study.http)
    monkeypatch.setenv("LYNCEUS_TOKEN", WRITE)
    assert lynceus.Client(server.url).study("shown").spent_usd == 0


def test_a_client_waits_for_a_server_that_is_restarted(tmp_path: Path) -> None:
    """The server is killed while a client works, and another one starts at the same address."""
    url = f"sqlite:///{tmp_path}/s.db"
    [port] = free_ports(1)
    with dashboard(url, tmp_path, port=port) as first:
        study = lynceus.Client(first.url, WRITE, patience_s=60.0).create_study(JOB | {"name": "long"})
        killed = threading.Event()

        def objective(trial: lynceus.Trial) -> float:
            if trial.number == 2:
                first.kill()
                killed.set()
            return seconds_of(trial)

        worker = threading.Thread(target=lambda: study.optimize(objective), daemon=True)
        worker.start()
        assert killed.wait(60)
    with dashboard(url, tmp_path, port=port):
        worker.join(60)
        assert not worker.is_alive()
        assert study.reason == "every configuration has been run"
        assert [trial.number for trial in study.trials] == list(range(8))
        assert {trial.state for trial in study.trials} <= {"COMPLETE", "TIMEOUT"}


def test_retries_end(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="it cannot be reached"):
        Http("http://127.0.0.1:9", patience_s=0.3).get("health")
