"""Recurring jobs over the API, and with the Python client: the same words and rules as on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

import lynceus
from dashboards import READ, WRITE, Dashboard, served
from lynceus.errors import InputError
from lynceus.library.recurring.recurring_job import adopt_job
from lynceus.server.job_examples import JOB_EXAMPLES
from lynceus.storage.sql.storage import Storage
from sample_jobs import search


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("jobs")
    with Storage(f"sqlite:///{folder}/s.db") as storage:
        search(storage)
    with served(f"sqlite:///{folder}/s.db", folder, read=READ) as running:
        yield running


@pytest.fixture
def name(site: Dashboard) -> str:
    """A new job in production."""
    made = f"job-{uuid4().hex[:8]}"
    answer = site.post(
        f"jobs/{made}/adopt", {"study": "search", "params": {"nodes": 4}, "by": "ana", "reason": "as is"}
    )
    assert (answer.status, answer.json) == (200, {"job": made, "version": 1, "params": {"nodes": 4}})
    return made


def test_a_run_is_reported_once(site: Dashboard, name: str) -> None:
    run = {"run_id": "r1", "runtime": "31m", "input": "120 GB", "cost": "$1.20"}
    assert site.post(f"jobs/{name}/runs", run).json == {"new": True, "version": 1, "changes": []}
    assert site.post(f"jobs/{name}/runs", run).json["new"] is False
    again = site.post(f"jobs/{name}/runs", run | {"runtime": "32m"})
    assert (again.status, "recorded already with other values" in again.sentence) == (409, True)
    for wrong in ({"runtime": -3}, {"runtime": "31m", "input": "-1 GB"}, {"runtime": 1, "version": 9}, {"input": 1}):
        answer = site.post(f"jobs/{name}/runs", {"run_id": "r2", **wrong})
        assert (answer.status, answer.sentence.count("\n")) == (422, 0), wrong
    runs = site.get(f"jobs/{name}").json["runs"]
    assert [(one["run_id"], one["cost_usd"], one["late"]) for one in runs] == [("r1", 1.2, True)]


def test_configurations_settings_and_rollback(site: Dashboard, name: str) -> None:
    assert site.get(f"jobs/{name}/config").json["params"] == {"nodes": 4}
    assert site.post(f"jobs/{name}/start", {"run_id": "r1", "input": 1e9}).json["canary"] is False
    site.post(f"jobs/{name}/adopt", {"params": {"nodes": 8}})
    assert site.get(f"jobs/{name}/config").json["version"] == 2
    for _ in range(2):  # a repeated request changes nothing
        assert site.post(f"jobs/{name}/rollback", {"to": 1, "by": "bo"}).json["version"] == 1
    changed = site.post(
        f"jobs/{name}/settings", {"mode": "suggest", "allowance": "$20", "exclude": ["sat"], "held": True}
    )
    assert (changed.json["mode"], changed.json["allowance_usd"], changed.json["held"]) == ("suggest", 20.0, True)
    wrong = site.post(f"jobs/{name}/settings", {"exclude": ["someday"]})
    assert (wrong.status, "someday" in wrong.sentence) == (422, True)
    kinds = [(one["kind"], one["by"]) for one in site.get(f"jobs/{name}").json["changes"]]
    assert kinds == [("adopt", "ana"), ("adopt", "client 127.0.0.1"), ("rollback", "bo"), ("hold", "client 127.0.0.1")]
    assert name in [one["name"] for one in site.get("jobs").json["jobs"]]


def test_a_repeated_adoption_answers_the_version_of_the_first(site: Dashboard) -> None:
    """After a lost answer the same request is sent again, perhaps while the first one is still carried out."""
    name = f"job-{uuid4().hex[:8]}"
    for number, body in enumerate(({"study": "search", "by": "ana"}, {"params": {"nodes": 8}, "reason": "faster"}), 1):
        with ThreadPoolExecutor(4) as pool:
            answers = [*pool.map(lambda _: site.post(f"jobs/{name}/adopt", body), range(4))]  # noqa: B023
        answers.append(site.post(f"jobs/{name}/adopt", body))
        assert {(answer.status, answer.json["version"]) for answer in answers} == {(200, number)}
    other = site.post(f"jobs/{name}/adopt", {"params": {"nodes": 8}, "reason": "another reason"})
    assert other.json["version"] == 3
    assert site.post(f"jobs/{name}/rollback", {"to": 2}).json["version"] == 2
    assert site.post(f"jobs/{name}/adopt", {"params": {"nodes": 4}}).json["version"] == 4
    changes = site.get(f"jobs/{name}").json["changes"]
    assert [(one["kind"], one["version"]) for one in changes] == [
        ("adopt", 1),
        ("adopt", 2),
        ("adopt", 3),
        ("rollback", 2),
        ("adopt", 4),
    ]


def test_unknown_jobs_and_missing_rights(site: Dashboard, name: str) -> None:
    for method, path in (("GET", "jobs/nosuch"), ("GET", "jobs/nosuch/config")):
        answer = site.request(method, path)
        assert (answer.status, "nosuch" in answer.sentence) == (404, True)
    assert site.post("jobs/nosuch/runs", {"run_id": "a", "runtime": 1}).status == 404
    assert site.post(f"jobs/{name}/rollback", {"to": 9}).status == 422
    assert site.get(f"jobs/{name}", token=None).status == 401
    assert site.post(f"jobs/{name}/rollback", {"to": 1}, token=READ).status == 403


def test_clients_cannot_make_the_server_read_its_files(site: Dashboard, tmp_path: Path) -> None:
    """Not a job file by its path, and not one that is named as the job is."""
    (tmp_path / "own.yaml").write_text("name: x\nrun: ./x --password p4ss\nspace: {n: [1, 2]}\nprice: n\nbudget: 1\n")
    for name, given in (("evil", {"study": str(tmp_path / "own.yaml")}), ("own.yaml", {})):
        answer = site.post(f"jobs/{name}/adopt", {"params": {"n": 1}, **given})
        assert (answer.status, "there is no study" in answer.sentence) == (422, True)
        assert site.get(f"jobs/{name}").status == 404
    missing = site.post("jobs/evil/adopt", {"study": str(tmp_path / "other.yaml"), "params": {"n": 1}})
    assert "there is no study" in missing.sentence, "nor does the answer tell which files there are"


def test_a_recorded_run_is_no_error_although_nobody_can_be_told(site: Dashboard, tmp_path: Path) -> None:
    """The scheduler would send the report again, or believe that its run had failed."""
    (tmp_path / "job.yaml").write_text(
        "name: x\nrun: 'true'\nspace: {n: [1, 2]}\nprice: n\nbudget: 1\nnotify: {webhook: 'env:NOT_SET_ON_THE_SERVER'}\n"
    )
    name = f"job-{uuid4().hex[:8]}"
    given = {"source": str(tmp_path / "job.yaml"), "params": {"n": 1}}
    adopt_job(name, storage=site.get("jobs").json["storage"], **given)
    answer = site.post(f"jobs/{name}/runs", {"run_id": "a", "runtime": 60})
    assert (answer.status, answer.json) == (200, {"new": True, "version": 1, "changes": []})


def test_examples_have_the_fields_of_real_answers(site: Dashboard, name: str) -> None:
    real = {
        "job_config": site.get(f"jobs/{name}/config").json,
        "start_run": site.post(f"jobs/{name}/start", {"run_id": "r1"}).json,
        "record_run": site.post(f"jobs/{name}/runs", {"run_id": "r1", "runtime": 60}).json,
        "adopt": site.post(f"jobs/{name}/adopt", {"params": {"nodes": 8}}).json,
        "rollback": site.post(f"jobs/{name}/rollback", {"to": 1}).json,
        "job_settings": site.post(f"jobs/{name}/settings", {"mode": "observe"}).json,
        "jobs": site.get("jobs").json,
        "job": site.get(f"jobs/{name}").json,
    }
    for operation, answer in real.items():
        assert JOB_EXAMPLES[operation].keys() <= answer.keys(), operation
    assert JOB_EXAMPLES["jobs"]["jobs"][0].keys() <= real["jobs"]["jobs"][0].keys()
    assert JOB_EXAMPLES["job"]["totals"].keys() == real["job"]["totals"].keys()
    assert JOB_EXAMPLES["job"]["next"].keys() <= real["job"]["next"].keys()
    assert real.keys() == JOB_EXAMPLES.keys()


def test_the_values_for_prometheus(site: Dashboard, name: str) -> None:
    for number in range(3):
        site.post(f"jobs/{name}/runs", {"run_id": str(number), "runtime": 1000 + number * 900, "input": "120 GB"})
    answer = site.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    mine = dict(line.rsplit(" ", 1) for line in lines if f'job_name="{name}"' in line)
    values = {key.partition("{")[0].removeprefix("lynceus_job_"): float(value) for key, value in mine.items()}
    assert (values["runs_total"], values["late_runs_total"], values["version"]) == (3.0, 2.0, 1.0)
    assert values["cost_dollars_total"] == pytest.approx((1000 + 1900 + 2800) * 2.4 / 3600)
    assert 0 <= values["late_chance"] <= 1
    assert lines.count("# TYPE lynceus_job_runs_total counter") == 1


def test_the_client_speaks_as_a_local_job_does(site: Dashboard) -> None:
    client = lynceus.Client(site.url, WRITE)
    job = client.job(f"job-{uuid4().hex[:8]}")
    assert job.adopt(study="search", params={"nodes": 2}, by="ana") == 1
    assert job.config()["params"] == {"nodes": 2}
    assert job.config(run_id="a", input="120 GB")["run_id"] == "a"
    assert job.record("20m", run_id="a", input="120 GB")
    assert not job.record("20m", run_id="a", input="120 GB")
    assert job.set(mode="suggest", exclude=["sun"], by="ana")["exclude"] == ["sun"]
    job.adopt(params={"nodes": 8})
    assert job.rollback(1, reason="too expensive") == 1
    assert job.status()["totals"]["runs"] == 1
    assert job.name in [one["name"] for one in client.jobs()]
    with pytest.raises(InputError, match="is not in"):
        client.job("nosuch").config()
