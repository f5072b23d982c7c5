"""A server beside a running study: live events, a stopped trial, a worker and clients on one study."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from dashboards import JOB, Dashboard, dashboard, served
from local_runs import eventually, processes_below
from lynceus import Categorical, Integer, Space, create_study
from lynceus.policy.policy_file import describe
from lynceus.server import commands
from lynceus.server.guard import Visitor
from lynceus.server.job_upload import uploaded_job
from lynceus.server.study_cache import StudyCache
from lynceus.storage.access_token import Role
from lynceus.storage.sql.leases import LOST_AFTER_S
from lynceus.storage.sql.storage import Storage, fingerprint
from lynceus.trial.outcome import FailureReason


@contextmanager
def listening(server: Dashboard, path: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """A function that returns the next message of a stream of events."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", f"/api/v1/{path}")
    stream = connection.getresponse()
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")

    def message() -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            line = stream.readline().decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name in ("event", "id"):
                found[name] = value
            elif name == "data":
                return found | json.loads(value)

    try:
        yield message
    finally:
        stream.close()
        connection.close()


def test_every_change_is_an_event(server: Dashboard, new_study) -> None:
    name, other = new_study(), new_study()
    with listening(server, f"studies/{name}/events") as message:
        first = message()
        assert (first["event"], first["study"], first["sequence"], first["settled"]) == ("changed", name, 0, 0)
        server.post(f"studies/{other}/ask")
        server.post(f"studies/{name}/ask")
        second = message()
        assert (second["study"], second["sequence"], second["settled"]) == (name, 1, 0)
        server.post(f"studies/{name}/trials/0/tell", {"runtime": 5})
        assert message()["settled"] == 1
        server.post(f"studies/{name}/stop")
        latest = message()
        while latest["sequence"] != server.get(f"studies/{name}").json["sequence"]:
            latest = message()
        assert latest["identity"] == first["identity"]
    assert server.get("studies/unknown/events").status == 404
    with listening(server, "events") as message:
        seen = {message()["study"] for _ in range(len(server.get("studies").json["studies"]))}
        assert {name, other} <= seen


def test_a_page_gets_only_new_trials(server: Dashboard, new_study) -> None:
    name = new_study()
    for number in range(3):
        server.post(f"studies/{name}/ask")
        server.post(f"studies/{name}/trials/{number}/tell", {"runtime": 50})
    whole = server.get(f"studies/{name}/view").json
    assert whole["settled"] == 3
    server.post(f"studies/{name}/ask")
    server.post(f"studies/{name}/trials/3/tell", {"runtime": 50})
    news = server.get(f"studies/{name}/view?since=3").json
    assert news["settled"] == 4
    assert news["trials"]["first"] == 3
    assert news["trials"]["number"] == [3]


SLOW = """\
name: slow
run: echo "began ${n}"; sleep 300
space: {n: [1, 2, 3]}
price: 36.0
constraints: ["runtime <= 10m"]
budget: {cost: 100 USD, max_trials: 2}
policy: sweep
trial: {parallel: 2, grace: 100ms, timeout: capped}
"""


@contextmanager
def worker(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}
    command = [sys.executable, "-m", "lynceus.cli", *arguments, "--storage", f"sqlite:///{folder}/s.db"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.terminate()
        process.wait(60)


def test_one_running_trial_is_stopped_and_the_other_continues(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(SLOW)
    with dashboard(f"sqlite:///{tmp_path}/s.db", tmp_path) as server, worker(tmp_path, "run", "job.yaml", "-y") as runs:
        eventually(
            lambda: server.get("studies/slow").status == 200 and server.get("studies/slow").json["open"] == [0, 1]
        )
        eventually(lambda: len(processes_below(tmp_path)) >= 2)
        eventually(lambda: "began" in str(server.get("studies/slow/trials/0").json["output"]))
        assert server.post("studies/slow/trials/0/stop", {}).status == 200
        eventually(lambda: server.get("studies/slow/trials/0").json["state"] == "FAIL")
        outcome = server.get("studies/slow/trials/0").json["outcome"]
        assert (outcome["reason"], "cancelled after" in outcome["detail"]) == ("user", True)
        assert outcome["charged_usd"] > 0
        facts = server.get("studies/slow").json
        assert (facts["state"], facts["open"]) == ("RUNNING", [1])
        assert server.post("studies/slow/stop", {"kill": True}).status == 200
        eventually(lambda: runs.poll() is not None)
        assert server.get("studies/slow").json["open"] == []
        assert server.get("studies/slow/trials/1").json["outcome"]["reason"] == "user"
    assert processes_below(tmp_path) == set()


def test_workers_do_not_touch_the_trials_of_clients(tmp_path: Path) -> None:
    """A client asks, its server stops, a worker starts: the worker neither adopts the trial nor runs its configuration."""
    url = f"sqlite:///{tmp_path}/s.db"
    with served(url, tmp_path) as server:
        assert server.post("studies", JOB | {"budget": {"cost": "500 USD", "max_trials": 2}}).status == 201
        asked = server.post("studies/toy/ask").json["trial"]
    with Storage(url) as storage:
        study = StudyCache(storage).writable("toy").study
        assert study.runs.adopt() == ()
        order = study.runs.order()
        assert order is not None
        assert study.problem.space.point(order.row) != asked["params"]


def test_trials_without_heartbeats_are_settled_if_their_client_has_sent_some(tmp_path: Path) -> None:
    now = [1_000_000.0]
    with Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: now[0]) as storage:
        prepared = uploaded_job(json.dumps(JOB).encode(), "application/json", tmp_path)
        storage.create_study(
            "toy",
            document=prepared.job.stored(),
            fingerprint=fingerprint(prepared.problem),
            policy=describe(prepared.policy),
        )
        one = StudyCache(storage).writable("toy")
        one.study.journal.worker = Visitor(Role.RUNNER, "10.0.0.7", token="ana").author  # type: ignore[attr-defined]
        beating, silent = one.study.ask(), one.study.ask()
        assert beating is not None
        assert silent is not None
        now[0] += 60
        one.study.runs.heartbeat([beating.number])
        commands.settle_silent(one, now[0] + LOST_AFTER_S - 1)
        assert len(one.study.pending) == 2
        commands.settle_silent(one, now[0] + LOST_AFTER_S + 1)
        assert [order.number for order in one.study.pending] == [silent.number]
        (lost,) = one.study.observations
        assert (lost.order.number, lost.outcome.reason, lost.outcome.seconds) == (
            beating.number,
            FailureReason.INFRA,
            60.0,
        )
        assert lost.outcome.charged_usd == pytest.approx(60 * beating.price_usd_per_hour / 3600)


def test_a_study_of_a_program_works_through_the_api(tmp_path: Path) -> None:
    """It has no job file, and its name needs quoting."""
    url = f"sqlite:///{tmp_path}/s.db"
    space = Space.build([Categorical("vm", ["small", "large"]), Integer("nodes", 1, 4)], price="nodes")
    study = create_study(
        space=space, budget="$9", policy="random", storage=url, study_name="my <b>study</b>".replace("/", "")
    )
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=100.0)
    with served(url, tmp_path) as server:
        (line,) = server.get("studies").json["studies"]
        assert (line["name"], line["trials"], line["budget_usd"]) == (study.name, 1, 9.0)
        here = f"studies/{quote(study.name)}"
        assert server.get(here).json["best_params"] == study.best_params
        assert server.get(f"{here}/view").json["settled"] == 1
        assert server.get(f"{here}/best").json["command"] is None
        number = server.post(f"{here}/ask").json["trial"]["number"]
        assert server.post(f"{here}/trials/{number}/tell", {"runtime": 50}).status == 200
    study.runs.refresh()
    assert [seen.outcome.seconds for seen in study.observations] == [100.0, 50.0]


def test_a_deleted_study_is_unknown_and_a_new_one_of_that_name_is_different(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with served(url, tmp_path) as server:
        server.post("studies", JOB)
        server.post("studies/toy/ask")
        first = server.get("studies/toy").json["identity"]
        with Storage(url) as storage:
            storage.delete_study("toy")
        assert server.get("studies/toy").status == 404
        assert server.post("studies/toy/ask").status == 404
        assert server.post("studies", JOB).status == 201
        again = server.get("studies/toy").json
        assert (again["trials"], again["open"]) == (0, [])
        assert again["identity"] != first
        assert server.post("studies/toy/ask").json["trial"]["number"] == 0


def test_the_server_survives_an_outage_of_the_storage(postgres, tmp_path: Path) -> None:
    url = postgres.database(f"web-{time.time_ns()}")
    with served(url, tmp_path) as server:
        assert server.post("studies", JOB).status == 201
        server.post("studies/toy/ask")
        postgres.stop()
        try:
            outage = server.get("studies/toy")
            assert (outage.status, outage.headers["retry-after"]) == (503, "2")
            assert server.post("studies/toy/trials/0/tell", {"runtime": 5}).status == 503
            assert server.get("health").status == 503
        finally:
            postgres.start()
        assert server.get("studies/toy").json["open"] == [0]
        assert server.post("studies/toy/trials/0/tell", {"runtime": 5}).status == 200


def test_listeners_do_not_keep_a_server_from_stopping(tmp_path: Path) -> None:
    with dashboard(f"sqlite:///{tmp_path}/s.db", tmp_path) as server:
        server.post("studies", JOB)
        with listening(server, "events") as message:
            message()
            assert server.process is not None
            server.process.terminate()
            assert server.process.wait(60) in (0, -signal.SIGTERM)
    assert not server.broken, "".join(server.stderr)
