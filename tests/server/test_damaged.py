"""A study whose rows make no sense: it is shown as damaged, and all others work."""

import json
import sqlite3
from pathlib import Path

from dashboards import JOB, WRITE, served

DAMAGE = {
    "document": "UPDATE studies SET document = '{' WHERE name = 'document'",
    "policy": "UPDATE studies SET policy = '[7]' WHERE name = 'policy'",
    "order": "UPDATE trials SET ordered = 'null' WHERE study_id = (SELECT id FROM studies WHERE name = 'order')",
    "outcome": "UPDATE trials SET outcome = 'nope' WHERE study_id = (SELECT id FROM studies WHERE name = 'outcome')",
}
PARTS = ("", "/view", "/trials", "/trials/0", "/insight", "/explain", "/best", "/export", "/what-if")


def test_a_damaged_study_does_not_take_others_down(folder: Path) -> None:
    url = f"sqlite:///{folder}/s.db"
    with served(url, folder) as server:
        for name in ("good", *DAMAGE):
            assert server.post("studies", JOB | {"name": name}).status == 201
            server.post(f"studies/{name}/ask")
            assert server.post(f"studies/{name}/trials/0/tell", {"runtime": 50}).status == 200
    with sqlite3.connect(folder / "s.db") as connection:
        for statement in DAMAGE.values():
            connection.execute(statement)
    connection.close()
    with served(url, folder) as server:
        lines = {line["name"]: line for line in server.get("studies").json["studies"]}
        assert {name: line["state"] for name, line in lines.items()} == {
            "good": "RUNNING", **dict.fromkeys(DAMAGE, "DAMAGED")
        }  # fmt: skip
        for name in DAMAGE:
            assert f"study {name!r}" in lines[name]["note"]
            assert "is damaged" in lines[name]["note"]
            answers = [server.get(f"studies/{name}{part}") for part in PARTS] + [server.post(f"studies/{name}/ask")]
            assert {answer.status for answer in answers} <= {200, 409}, name
            assert "is damaged" in answers[0].sentence
        for part in PARTS:
            assert server.get(f"studies/good{part}").status == 200
        assert server.post("studies/good/ask").json["trial"]["number"] == 1
        assert server.get(f"compare?a=good&b={next(iter(DAMAGE))}").status == 409
        metrics = server.get("/metrics")
        assert (metrics.status, 'lynceus_trials{study="good",state="complete"} 1' in metrics.body.decode()) == (
            200,
            True,
        )


def test_the_address_of_the_storage_is_never_served(folder: Path) -> None:
    """Older versions stored it with the job, password and all."""
    secret, url = "hunter-2", f"sqlite:///{folder}/s.db"
    with served(url, folder) as server:
        body = JOB | {"storage": f"postgresql://me:{secret}@db.example/studies?sslpassword={secret}"}
        assert server.post("studies", body).status == 201
    with sqlite3.connect(folder / "s.db") as connection:
        (text,) = connection.execute("SELECT document FROM studies").fetchone()
        document = json.loads(text)
        document["job"]["storage"] = body["storage"]
        connection.execute("UPDATE studies SET document = ?", [json.dumps(document)])
    connection.close()
    with served(url, folder) as server:
        server.post("studies/toy/ask")
        server.post("studies/toy/trials/0/tell", {"runtime": 50})
        paths = ["studies", *(f"studies/toy{part}" for part in PARTS), "compare?a=toy&b=toy", "health", "openapi.json"]
        for path in [*paths, "studies/toy/export?format=json"]:
            answer = server.get(path)
            assert answer.status == 200, answer.body
            assert secret.encode() not in answer.body, path
        assert "storage" not in server.get("studies/toy").json["job"]


def test_a_stranger_does_not_learn_where_the_storage_is(postgres, tmp_path: Path) -> None:
    url = postgres.database("hidden")
    with served(url, tmp_path, read="read-token-0123456789", token=None) as server:
        postgres.stop()
        try:
            public = server.get("health")
            assert (public.status, public.sentence) == (503, "The storage cannot be reached; try again later.")
            assert "postgresql" in server.get("health", token=WRITE).sentence
        finally:
            postgres.start()
