"""The API on a real server; its answers are compared with the storage."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dashboards import JOB, Dashboard
from lynceus.storage.sql.storage import Storage


def run_trials(server: Dashboard, name: str, seconds: Callable[[dict[str, Any]], float]) -> int:
    """Ask and tell until the study ends; returns the number of trials."""
    number = 0
    while (trial := server.post(f"studies/{name}/ask").json["trial"]) is not None:
        runtime = seconds(trial["params"])
        late = trial["timeout_s"] is not None and runtime > trial["timeout_s"]
        body = {"runtime": min(runtime, trial["timeout_s"] or runtime), "state": "TIMEOUT" if late else "COMPLETE"}
        assert server.post(f"studies/{name}/trials/{trial['number']}/tell", body).status == 200
        number += 1
    return number


def seconds_of(params: dict[str, Any]) -> float:
    return float(400 / params["n"] + 10 + (50 if params["mode"] == "a" else 0))


def test_a_study_learns_from_another_study_of_the_server(server: Dashboard, new_study) -> None:
    past = new_study()
    run_trials(server, past, seconds_of)
    job = JOB | {"name": f"{past}-again", "history": [past, "never-made"], "policy": "lynceus", "trial": {}}
    answer = server.post("studies", job)
    assert answer.status == 201, answer.body
    assert "never-made" in answer.json["note"]
    name = answer.json["name"]
    insight = server.get(f"studies/{name}/insight").json
    assert past in insight["next"]["trial"]["plan"]["why"]
    (told,) = insight["history"]["jobs"]
    assert told["name"] == past
    assert told["weight"] > 0
    refused = server.post("studies", job | {"name": "reader", "history": [{"file": "/etc/passwd"}]})
    assert refused.status in (400, 422)


def test_a_search_over_http_matches_the_storage(server: Dashboard, new_study) -> None:
    name = new_study()
    assert run_trials(server, name, seconds_of) == 8
    ended = server.post(f"studies/{name}/ask").json
    assert ended == {"trial": None, "reason": "every configuration has been run", "wait": False}

    url = server.get("studies").json["storage"]
    with Storage(url) as storage:
        kept = storage.trials(name)
        record = storage.load_study(name)
    assert [trial.number for trial in kept] == list(range(8))
    assert record.state == "FINISHED"
    facts = server.get(f"studies/{name}").json
    assert facts["state"] == "FINISHED"
    assert facts["trials"] == 8
    assert facts["spent_usd"] == pytest.approx(sum(trial.outcome.charged_usd for trial in kept))
    assert facts["sequence"] == record.sequence
    finished = [trial for trial in kept if trial.outcome.end == "finished"]
    cheapest = min(finished, key=lambda trial: trial.outcome.seconds * trial.params["n"])
    assert facts["best_trial"] == cheapest.number
    assert facts["best_params"] == cheapest.params
    best = server.get(f"studies/{name}/best").json
    assert (best["params"], best["trial"]) == (cheapest.params, cheapest.number)
    assert best["cost_usd"] == pytest.approx(facts["best_value"], rel=0.15)  # what all its runs let expect

    page = server.get(f"studies/{name}/trials?limit=3&offset=6").json
    assert (page["total"], [row["number"] for row in page["trials"]], page["next_offset"]) == (8, [6, 7], None)
    assert [row["runtime_s"] for row in page["trials"]] == [trial.outcome.seconds for trial in kept[6:]]
    newest = server.get(f"studies/{name}/trials?limit=1&order=-number").json
    assert (newest["trials"][0]["number"], newest["next_offset"]) == (7, 1)
    fast = server.get(f"studies/{name}/trials?where=n%20%3E%3D%204&state=COMPLETE").json["trials"]
    assert {row["number"] for row in fast} == {trial.number for trial in finished if trial.params["n"] >= 4}
    late = server.get(f"studies/{name}/trials?state=TIMEOUT").json["total"]
    assert late == 8 - len(finished)
    assert server.get(f"studies/{name}/trials?feasible=true").json["total"] == len(finished)

    rows = list(csv.DictReader(io.StringIO(server.get(f"studies/{name}/export").body.decode())))
    assert [float(row["runtime_s"]) for row in rows] == [trial.outcome.seconds for trial in kept]
    assert [row["params"] for row in server.get(f"studies/{name}/export?format=json").json] == [t.params for t in kept]


def test_answers_of_models(server: Dashboard, new_study) -> None:
    name = new_study(policy="bo", trial={"timeout": "none"}, baseline={"n": 8, "mode": "a"})
    run_trials(server, name, seconds_of)
    explained = server.get(f"studies/{name}/explain").json
    assert {part["parameter"] for part in explained["importance"]} == {"n", "mode"}
    assert server.get(f"studies/{name}/importance").json["importance"] == explained["importance"]
    answers = server.get(f"studies/{name}/what-if?deadline=1m,2m,10m&price=price*2").json["answers"]
    assert [answer["label"] for answer in answers] == [
        "as it is", "runtime <= 1m", "runtime <= 2m", "runtime <= 10m", "price price*2",
    ]  # fmt: skip
    for answer, deadline in zip(answers[1:4], (60, 120, 600), strict=True):
        assert answer["measured"]["runtime_s"] <= answer["deadline_s"] == deadline
    assert answers[1]["measured"]["cost_usd"] > answers[3]["measured"]["cost_usd"]
    assert answers[4]["measured"]["cost_usd"] == pytest.approx(2 * answers[0]["measured"]["cost_usd"])
    assert server.get(f"studies/{name}/best?deadline=1m").json["params"] == answers[1]["measured"]["params"]
    sides = server.get(f"compare?a={name}&b={name}").json["sides"]
    assert [side["name"] for side in sides] == [name, name]


def test_the_command_line_prints_the_same_documents(server: Dashboard, new_study) -> None:
    name = new_study(policy="bo", trial={"timeout": "none"}, baseline={"n": 8, "mode": "a"})
    run_trials(server, name, seconds_of)
    storage = server.get("studies").json["storage"]

    def printed(command: str, *options: str) -> Any:
        arguments = [command, name, "--storage", storage, "-o", "json", *options]
        done = subprocess.run([sys.executable, "-m", "lynceus.cli", *arguments], capture_output=True, check=True)
        return json.loads(done.stdout)

    assert printed("best") == server.get(f"studies/{name}/best").json
    assert printed("best", "--deadline", "1m") == server.get(f"studies/{name}/best?deadline=1m").json
    assert printed("explain") == server.get(f"studies/{name}/explain").json
    assert printed("whatif", "--deadline", "1m,2m") == server.get(f"studies/{name}/what-if?deadline=1m,2m").json
    assert printed("trials") == server.get(f"studies/{name}/trials").json["trials"]
    status = printed("status")
    assert status.items() <= server.get(f"studies/{name}").json.items()
    assert status in server.get("studies").json["studies"]


def test_a_study_from_the_text_of_a_job_file(server: Dashboard) -> None:
    text = b"name: from-text\nrun: ./job.sh ${n}\nshell: true\nspace: {n: [1, 2]}\nprice: n\nbudget: 5 USD\n"
    answer = server.post("studies", text, {"Content-Type": "application/yaml"})
    assert (answer.status, answer.json) == (201, {"name": "from-text", "note": None})
    assert server.get("studies/from-text").json["parameters"] == {"n": [1, 2]}
    again = server.post("studies", text, {"Content-Type": "application/yaml"})
    assert (again.status, "exists already" in again.sentence) == (409, True)
    wrong = server.post("studies", text.replace(b"budget", b"bugdet"), {"Content-Type": "text/yaml"})
    assert wrong.status == 422
    assert "job:6" in wrong.sentence
    assert "bugdet" in wrong.sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"derived": {"x": {"join": "n", "table": "/etc/passwd"}}}, "cannot read tables on the server"),
        ({"prices": {"file": "/etc/passwd"}, "price": None}, "cannot read catalogs on the server"),
        ({"workdir": "/etc"}, "outside the server's folder"),
        ({"workdir": "../.."}, "outside the server's folder"),
        ({"executor": {"run_directory": "../x"}}, "outside the server's folder"),
        ({"name": "../../etc"}, "use up to 100 letters"),
        ({"seed": 2**70}, "seed"),
        ({"space": {"n": ["\0"]}}, "cannot be stored"),
        ({"space": {"n": []}}, "at least one value"),
    ],
)
def test_jobs_that_are_refused(server: Dashboard, change: dict[str, Any], sentence: str) -> None:
    job = {key: value for key, value in (JOB | {"name": "refused"} | change).items() if value is not None}
    answer = server.post("studies", job)
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert sentence in answer.sentence
    assert "refused" not in [one["name"] for one in server.get("studies").json["studies"]]


def test_unknown_studies_and_trials_and_trials_that_have_ended(server: Dashboard, new_study) -> None:
    name = new_study()
    assert server.get("studies/unknown").status == 404
    assert server.post("studies/unknown/ask").status == 404
    assert server.get(f"studies/{name}/trials/0").status == 404
    assert server.post(f"studies/{name}/trials/0/tell", {"runtime": 5}).status == 404
    number = server.post(f"studies/{name}/ask").json["trial"]["number"]
    assert server.post(f"studies/{name}/trials/{number}/tell", {"runtime": "5s"}).status == 200
    late = server.post(f"studies/{name}/trials/{number}/tell", {"runtime": 6})
    assert (late.status, "has ended already" in late.sentence) == (409, True)
    assert server.get(f"studies/{name}/trials/{number}").json["outcome"]["runtime_s"] == 5


def test_text_from_outside_is_cleaned_where_it_enters(server: Dashboard, new_study) -> None:
    """What cannot be stored, or would act on a terminal, is replaced; what is only markup somewhere is kept."""
    name = new_study()
    server.post(f"studies/{name}/ask")
    odd = {
        "p99\0": 1,
        "\ud800": 2,
        "\x1b[2J": 3,
        "evil\u202e": 4,
        "[/bold]": 5,
        "__proto__": 6,
        "a\n b": 7,
        "x" * 150: 8,
    }
    body = {"runtime": 5, "metrics": odd, "detail": "first\0\n\x1b]0;title\x07 \ud800"}
    told = server.post(f"studies/{name}/trials/0/tell", body)
    assert told.status == 200, told.body
    assert told.json["trial"]["detail"] == "first\ufffd \ufffd]0;title\ufffd \ufffd"
    clean = {
        "p99\ufffd": 1,
        "\ufffd": 2,
        "\ufffd[2J": 3,
        "evil\ufffd": 4,
        "[/bold]": 5,
        "__proto__": 6,
        "a b": 7,
        "x" * 99 + "…": 8,
    }
    assert told.json["trial"]["metrics"] == clean
    server.post(f"studies/{name}/stop", {"reason": "enough\0\x1b[2J"})
    assert server.get(f"studies/{name}").json["reason"] == "enough\ufffd\ufffd[2J"
    rows = server.get(f"studies/{name}/export").body.decode()
    assert "\0" not in rows
    assert "\x1b" not in rows


def test_exported_formulas_are_text(server: Dashboard, new_study) -> None:
    name = new_study()
    server.post(f"studies/{name}/ask")
    formula = '=HYPERLINK("http://evil.example";"click")'
    server.post(f"studies/{name}/trials/0/tell", {"runtime": 5, "metrics": {formula: 1}, "detail": formula})
    exported = server.get(f"studies/{name}/export")
    assert exported.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}.csv"
    for row in csv.reader(exported.body.decode().splitlines()):
        assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "needs its running time"),
        ({"runtime": 0}, "0 seconds"),
        ({"runtime": "soon"}, "runtime"),
        ({"runtime": 1e300}, "is too long"),
        ({"runtime": 5, "charged": 1e300}, "is too much"),
        ({"runtime": 5, "state": "RUNNING"}, "state"),
        ({"runtime": 5, "reason": "infra"}, "only a trial that failed has a reason"),
        ({"runtime": 5, "metrics": {"loss": "low"}}, "metrics.loss"),
        ({"runtime": 5, "surprise": 1}, "surprise"),
        ({"runtime": 5, "progress": [[1]]}, "progress"),
        (b'{"runtime": NaN}', "finite"),
        (b'{"runtime": 5, "metrics": {" ": 1}}', "metrics"),
        (b"{", "JSON"),
        (b"[1]", "body"),
        (b"\xff\xfe", "body"),
    ],
)
def test_tells_that_are_refused_change_nothing(server: Dashboard, new_study, body: Any, sentence: str) -> None:
    name = new_study()
    server.post(f"studies/{name}/ask")
    answer = server.post(f"studies/{name}/trials/0/tell", body)
    assert answer.status in (400, 422), answer.body
    assert sentence.lower() in answer.sentence.lower()
    assert server.get(f"studies/{name}").json["open"] == [0]


def test_stop_resume_queue_and_past_measurements(server: Dashboard, new_study) -> None:
    name = new_study()
    wanted = {"n": 4, "mode": "b"}
    assert server.post(f"studies/{name}/queue", {"params": wanted}).json == {"queue": [wanted]}
    assert server.post(f"studies/{name}/ask").json["trial"]["params"] == wanted
    assert server.post(f"studies/{name}/queue", {"params": {"n": 3, "mode": "b"}}).status == 422
    past = {"trials": [{"params": {"n": 1, "mode": "a"}, "runtime": "7m"}]}
    assert server.post(f"studies/{name}/trials", past).json == {"added": 1, "trials": 1}

    assert server.post(f"studies/{name}/stop", {"kill": False, "reason": "lunch"}).json == {"open_trials": 1}
    facts = server.get(f"studies/{name}").json
    assert (facts["state"], facts["reason"]) == ("STOPPED", "lunch")
    assert server.post(f"studies/{name}/ask").json["trial"] is None
    assert server.post(f"studies/{name}/trials/0/heartbeat").json == {"requested_state": "stop"}
    answer = server.post(f"studies/{name}/resume", {"add_budget": "5 USD", "constraints": ["runtime <= 20m"]}).json
    assert answer == {"budget_usd": 505.0, "constraints": ["time <= 20m"]}
    facts = server.get(f"studies/{name}").json
    assert facts["constraints"] == ["time <= 20m"]
    assert "time <= 20m, before trial 2" in facts["limit_changes"][0]
    assert server.post(f"studies/{name}/ask").json["trial"] is not None


def test_a_heartbeat_tells_the_client_that_its_trial_was_stopped(server: Dashboard, new_study) -> None:
    name = new_study()
    server.post(f"studies/{name}/ask")
    assert server.post(f"studies/{name}/trials/0/heartbeat").json == {"requested_state": "run"}
    stopped = server.post(f"studies/{name}/trials/0/stop", {})
    assert stopped.json == {"number": 0, "worker": "client 127.0.0.1"}
    assert server.post(f"studies/{name}/trials/0/heartbeat").json == {"requested_state": "kill"}
    body = {"state": "FAIL", "reason": "user", "runtime": 3}
    assert server.post(f"studies/{name}/trials/0/tell", body).json["trial"]["state"] == "FAIL"
    assert server.post(f"studies/{name}/trials/0/stop").status == 409


def test_every_operation_is_documented_with_an_example(server: Dashboard) -> None:
    document = server.get("openapi.json", token=None).json
    assert document["openapi"].startswith("3.")
    operations = [(path, method, one) for path, methods in document["paths"].items() for method, one in methods.items()]
    assert len(operations) > 20
    for path, method, operation in operations:
        where = f"{method} {path}"
        assert operation["description"], where
        success = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        assert any("example" in kind or "examples" in kind for kind in success["content"].values()), where
        for kind in operation.get("requestBody", {}).get("content", {}).values():
            text = json.dumps([kind, document["components"]["schemas"]])
            assert "example" in kind or '"examples"' in text, where


def test_examples_have_the_fields_of_real_answers(server: Dashboard, new_study) -> None:
    from lynceus.server.examples import EXAMPLES
    from lynceus.server.job_examples import JOB_EXAMPLES
    from lynceus.server.team_examples import TEAM_EXAMPLES

    name = new_study()
    real = {
        "ask": server.post(f"studies/{name}/ask").json,
        "heartbeat": server.post(f"studies/{name}/trials/0/heartbeat").json,
        "stop_trial": server.post(f"studies/{name}/trials/0/stop").json,
        "tell": server.post(f"studies/{name}/trials/0/tell", {"runtime": 90}).json,
        "enqueue": server.post(f"studies/{name}/queue", {"params": {"n": 1, "mode": "a"}}).json,
        "add_trials": server.post(
            f"studies/{name}/trials", {"trials": [{"params": {"n": 2, "mode": "a"}, "runtime": 9}]}
        ).json,
        "trials": server.get(f"studies/{name}/trials").json,
        "trial": server.get(f"studies/{name}/trials/0").json,
        "studies": server.get("studies").json,
        "study": server.get(f"studies/{name}").json,
        "best": server.get(f"studies/{name}/best").json,
        "explain": server.get(f"studies/{name}/explain").json,
        "importance": server.get(f"studies/{name}/importance").json,
        "what_if": server.get(f"studies/{name}/what-if?deadline=5m").json,
        "compare": server.get(f"compare?a={name}&b={name}").json,
        "study_view": server.get(f"studies/{name}/view").json,
        "insight": server.get(f"studies/{name}/insight").json,
        "contour": server.get(f"studies/{name}/contour").json,
        "note": server.post(f"studies/{name}/note", {"text": "new disks"}).json,
        "resume": server.post(f"studies/{name}/resume").json,
        "stop": server.post(f"studies/{name}/stop").json,
        "rename": server.post(f"studies/{name}/rename", {"name": f"{name}-renamed"}).json,
        "delete": server.request("DELETE", f"studies/{name}-renamed").json,
        "health": server.get("health").json,
        "session": server.get("session").json,
    }
    for operation, answer in real.items():
        assert EXAMPLES[operation].keys() <= answer.keys(), operation
    assert EXAMPLES["tell"]["trial"].keys() == real["tell"]["trial"].keys()
    assert EXAMPLES["ask"]["trial"].keys() == real["ask"]["trial"].keys()
    assert EXAMPLES["studies"]["studies"][0].keys() <= real["studies"]["studies"][0].keys()
    assert EXAMPLES["what_if"]["answers"][0].keys() == real["what_if"]["answers"][0].keys()
    assert EXAMPLES["what_if"]["answers"][0]["measured"].keys() == real["what_if"]["answers"][0]["measured"].keys()
    assert EXAMPLES["explain"]["next"].keys() == real["explain"]["next"].keys()
    # those of jobs in test_jobs.py, those of teams in test_teams.py
    compared = real.keys() | {"create"} | JOB_EXAMPLES.keys() | TEAM_EXAMPLES.keys()
    assert compared == EXAMPLES.keys(), "every example is compared with a real answer"


def test_pages_are_served_with_a_content_security_policy(server: Dashboard, new_study) -> None:
    name = new_study()
    for page in ("/", f"/studies/{name}", f"/studies/{name}/trials/0", "/compare", "/login"):
        answer = server.get(page)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), page
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert b"<script>" not in answer.body
