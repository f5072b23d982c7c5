"""`/metrics` of the server and of workers, read with Prometheus's own parser."""

import json
import re
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

import lynceus
from dashboards import READ, WRITE, served
from lynceus.analysis.prometheus import StudyNumbers, exposition
from lynceus.cli.worker_metrics import served_metrics
from lynceus.errors import InputError
from lynceus.library.recurring.recurring_job import adopt_job
from lynceus.server.metrics import StudyMetrics
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.storage import Storage
from lynceus.trial.shared_budget import Account
from ports import free_ports
from told_times import JOB, seconds_of, study

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "lynceus.json"


def parsed(text: str) -> dict[tuple[str, str], float]:
    """Every sample by name and labels but the study's."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = ",".join(value for key, value in sorted(one.labels.items()) if key != "study")
            found[one.name, labels] = one.value
    return found


def finished(storage: str, name: str) -> lynceus.Study:
    one = lynceus.create_study(
        space=study().problem.space,
        constraints=["runtime <= 20m"],
        budget="2 USD",
        storage=storage,
        study_name=name,
        baseline={"config": {"vm": "large", "nodes": 8}, "runtime": 400.0},
    )
    one.optimize(lambda trial: min(seconds_of(trial.params), trial.timeout or 1e9))
    return one


def test_the_server_tells_money_trials_and_decisions_to_those_with_a_token(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    one = finished(storage, "told before")
    with served(storage, tmp_path, read=READ) as server:
        assert server.get("/metrics", token=None).status == 401
        assert server.get("/metrics", token="wrong").status == 401
        answer = server.get("/metrics", token=READ)
        assert answer.status == 200
        found = parsed(answer.body.decode())
        assert found["lynceus_spent_dollars_total", ""] == pytest.approx(one.spent_usd)
        assert found["lynceus_reserved_dollars", ""] == 0
        assert found["lynceus_budget_dollars", ""] == 2
        states = [str(trial.state) for trial in one.trials]
        assert found["lynceus_trials", "complete"] == states.count("COMPLETE")
        assert found["lynceus_trials", "timeout"] == states.count("TIMEOUT")
        late = sum((trial.runtime_s or 0) >= 1200 for trial in one.trials)
        assert found["lynceus_deadline_misses_total", ""] == late
        baseline_usd = 400 / 3600 * 0.25 * 8
        assert found["lynceus_saved_dollars", ""] == pytest.approx(baseline_usd - one.best_value, rel=1e-6)
        assert found["lynceus_study_state", "FINISHED"] == 1
        client = lynceus.Client(server.url, WRITE)
        remote = client.create_study({**JOB, "name": "asked"})
        trial = remote.ask()
        assert trial is not None
        found = parsed(server.get("/metrics", token=READ).body.decode())
        assert found["lynceus_decision_seconds_count", ""] == 1
        assert found["lynceus_decision_seconds_sum", ""] > 0
        assert found["lynceus_trials", "running"] == 1


def test_shared_budgets_have_their_values(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path) as server:
        client = lynceus.Client(server.url, WRITE)
        assert "lynceus_shared_budget" not in server.get("/metrics").body.decode(), (
            "without budgets there is nothing to tell"
        )
        client.set_budget("project:forecasts", "30 USD")
        client.set_budget('owner:a"b', 0)
        one = client.create_study({**JOB, "name": "paid", "project": "forecasts", "owner": 'a"b', "policy": "sweep"})
        assert one.ask() is None, "its owner has nothing"
        client.set_budget('owner:a"b', 50)
        one.resume()
        first, second = one.ask(), one.ask()
        assert first is not None
        assert second is not None
        one.tell(first, runtime=100.0)
        client.set_budget('owner:a"b', 0.001)
        found = parsed(server.get("/metrics").body.decode())
        reserved = one.reserved_usd
        assert reserved > 0
        assert one.spent_usd > 0.001
        for who, usd in (("forecasts", 30.0), ('a"b', 0.001)):
            assert found["lynceus_shared_budget_dollars", who] == usd
            assert found["lynceus_shared_budget_charged_dollars", who] == pytest.approx(one.spent_usd)
            assert found["lynceus_shared_budget_reserved_dollars", who] == pytest.approx(reserved)
            left = usd - one.spent_usd - reserved
            assert found["lynceus_shared_budget_left_dollars", who] == pytest.approx(left)
        families = {one.name: one for one in text_string_to_metric_families(server.get("/metrics").body.decode())}
        kinds = [sorted(sample.labels) for sample in families["lynceus_shared_budget_left_dollars"].samples]
        assert sorted(kinds) == [["owner"], ["project"]]


def test_a_scrape_reads_only_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    for name in ("a", "b", "c"):
        finished(url, name)
    storage = Storage(url)
    metrics, asked = StudyMetrics(storage), []
    totals = Storage.totals
    monkeypatch.setattr(Storage, "totals", lambda self, name: asked.append(name) or totals(self, name))
    first = metrics.read(patience_s=0.0)
    assert all(one.saved_usd is None and one.late is None for one in first), "what needs models waits"
    seen = len(asked)
    second = metrics.read(patience_s=60.0)
    assert all(one.saved_usd is not None and one.late is not None for one in second)
    known = len(asked)
    assert metrics.read() == second
    assert len(asked) == known, "nothing has changed, so nothing is read"
    assert seen == 3
    storage.close()


def test_a_worker_serves_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    one = study()
    trial = one.ask()
    assert trial is not None
    (port,) = free_ports(1)
    monkeypatch.delenv("LYNCEUS_READ_TOKEN", raising=False)
    with served_metrics(one, f"127.0.0.1:{port}"), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        found = parsed(answer.read().decode())
    assert found["lynceus_trials", "running"] == 1
    assert found["lynceus_decision_seconds_count", ""] == 1
    with pytest.raises(InputError, match="set LYNCEUS_READ_TOKEN"), served_metrics(one, f"0.0.0.0:{port}"):
        pass
    with pytest.raises(InputError, match="expected an address and a port"), served_metrics(one, "here"):
        pass
    monkeypatch.setenv("LYNCEUS_READ_TOKEN", "secret")
    with served_metrics(one, f"127.0.0.1:{port}"):
        with pytest.raises(HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer secret"})
        assert urllib.request.urlopen(request).status == 200


def test_names_are_escaped() -> None:
    text = exposition([StudyNumbers('a"b\\c\nd', "RUNNING", 1.0, float("inf"), 0, 0, 0, 0)])
    (one,) = next(iter(text_string_to_metric_families(text))).samples
    assert one.labels["study"] == 'a"b\\c\nd'
    assert parsed(text)["lynceus_reserved_dollars", ""] == float("inf")


QUERIES = [target["expr"] for one in json.loads(DASHBOARD.read_text())["panels"] for target in one["targets"]]


def test_the_dashboard_of_grafana_asks_for_metrics_that_exist(tmp_path: Path) -> None:
    """A server that has a study, a recurring job and a budget answers every query."""
    url = f"sqlite:///{tmp_path}/s.db"
    finished(url, "etl")
    with Storage(url) as storage:
        BudgetStore(storage).set(Account.parse("owner:ana"), 50.0, by="boss")
    job = adopt_job("nightly", source="etl", storage=url)
    for number in range(6):
        job.record(300.0 + number)
    with served(url, tmp_path, read=READ) as server:
        known = set(re.findall(r"^lynceus_\w+", server.get("/metrics").body.decode(), re.MULTILINE))
    decided = {"lynceus_decision_seconds_sum", "lynceus_decision_seconds_count"}  # of workers, and of `ask` over HTTP
    asked = {name for query in QUERIES for name in re.findall(r"lynceus_\w+", query)}
    assert asked - decided <= known
    assert decided <= asked
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({one["id"] for one in panels}) == len(panels) == 12


def test_the_dashboard_of_grafana_counts_a_study_once() -> None:
    """The server and every worker of a study tell the same money and trials; only seconds of decisions are each one's own."""
    for query in QUERIES:
        for name in re.findall(r"lynceus_\w+", query):
            wanted = r"sum by \(study\) \(rate\(" if "decision_seconds" in name else r"max by \([a-z_, ]+\) \("
            assert re.search(wanted + name, query), query
