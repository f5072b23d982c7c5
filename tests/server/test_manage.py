"""Notes, renaming and deleting through the API, and the contour of two parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dashboards import READ, WRITE, Dashboard, served
from lynceus.storage.sql.storage import Storage
from sample_studies import sample_study

NewStudy = Callable[..., str]


def test_a_note_is_kept_and_versions_tell_writers_apart(server: Dashboard, new_study: NewStudy) -> None:
    name = new_study()
    assert server.get(f"studies/{name}/note").json == {"text": "", "version": 0, "written_s": None}
    before = server.get(f"studies/{name}").json["sequence"]
    first = server.post(f"studies/{name}/note", {"text": "Disks were\nreplaced. <b>\x1b[2J", "replaces": 0})
    assert first.status == 200
    assert first.json["version"] == 1
    assert first.json["text"].startswith("Disks were\nreplaced. <b>")
    assert "\x1b" not in first.json["text"], "text of users cannot act on a terminal"
    assert server.get(f"studies/{name}").json["sequence"] > before, "pages notice it"
    late = server.post(f"studies/{name}/note", {"text": "mine", "replaces": 0})
    assert late.status == 409
    assert "Somebody else" in late.sentence
    assert server.post(f"studies/{name}/note", {"text": "mine", "replaces": 1}).json["version"] == 2
    assert server.get(f"studies/{name}/note").json["text"] == "mine"
    assert server.post(f"studies/{name}/note", {"text": "x" * 10_001}).status == 422
    repeated = [
        server.post(f"studies/{name}/note", {"text": "again"}, {"Idempotency-Key": f"note-{name}"}) for _ in "ab"
    ]
    assert [one.json["version"] for one in repeated] == [3, 3]


def test_a_note_does_not_hide_that_the_worker_left(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    with sample_study(tmp_path, "left", 2).storage as storage:
        storage.journal("left").release()
    with served(address, tmp_path) as server:
        assert server.get("studies/left").json["state"] == "INTERRUPTED"
        server.post("studies/left/note", {"text": "waiting for the new disks"})
        assert server.get("studies/left").json["state"] == "INTERRUPTED"


def test_readers_can_read_notes_but_change_nothing(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    sample_study(tmp_path, "own", 2).storage.close()
    with served(address, tmp_path, read=READ) as server:
        assert server.get("studies/own/note", token=READ).status == 200
        assert server.get("studies/own/note", token=None).status == 401
        for method, path, body in (
            ("POST", "studies/own/note", {"text": "a"}),
            ("POST", "studies/own/rename", {"name": "b"}),
            ("DELETE", "studies/own", None),
        ):
            assert server.request(method, path, body, token=READ).status == 403
            assert server.request(method, path, body, token=None).status == 401
        assert server.get("studies/own", token=READ).status == 200
        server.post("studies/own/stop")
        assert server.request("DELETE", "studies/own", token=WRITE).status == 200


def test_rename(server: Dashboard, new_study: NewStudy) -> None:
    name, other = new_study(), new_study()
    server.post(f"studies/{name}/note", {"text": "stays"})
    taken = server.post(f"studies/{name}/rename", {"name": other})
    assert taken.status == 409
    assert "exists already" in taken.sentence
    assert server.post(f"studies/{name}/rename", {"name": "a/b"}).status == 422
    assert server.post("studies/unknown/rename", {"name": "c"}).status == 404
    odd = server.post(f"studies/{name}/rename", {"name": "<img src=x>"})
    assert odd.status == 422
    assert "use up to 100 letters" in odd.sentence, "a name that no job file can have would make the study unreadable"
    renamed = server.post(f"studies/{name}/rename", {"name": f"{name}.again"})
    assert (renamed.status, renamed.json) == (200, {"name": f"{name}.again"})
    assert server.get(f"studies/{name}").status == 404
    path = f"studies/{name}.again"
    assert server.get(f"{path}/note").json["text"] == "stays"
    asked = server.post(f"{path}/ask")
    assert asked.status == 200, asked.body
    assert asked.json["trial"]["number"] == 0, "the study goes on under its new name"
    busy = server.post(f"{path}/rename", {"name": "again"})
    assert busy.status == 409
    assert "open trial" in busy.sentence


def test_delete(server: Dashboard, new_study: NewStudy) -> None:
    name = new_study()
    server.post(f"studies/{name}/ask")
    busy = server.request("DELETE", f"studies/{name}")
    assert busy.status == 409
    assert "open trial" in busy.sentence
    server.post(f"studies/{name}/trials/0/tell", {"runtime": 30})
    server.post(f"studies/{name}/stop")
    gone = server.request("DELETE", f"studies/{name}")
    assert (gone.status, gone.json) == (200, {"name": name, "trials": 1, "left": None})
    assert server.request("DELETE", f"studies/{name}").status == 404
    assert name not in [one["name"] for one in server.get("studies").json["studies"]]


def test_contour(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    sample_study(tmp_path, "own", 8).storage.close()
    with served(address, tmp_path) as server:
        found = server.get("studies/own/contour?x=memory&y=nodes").json
        assert [step for [step] in found["x"]["steps"]] == ["4g", "8g", "12g"]
        assert [len(found["value"]), len(found["value"][0])] == [8, 3]
        assert server.get("studies/own/contour").json["x"]["parameter"] == found["parameters"][0], "the most important"
        wrong = server.get("studies/own/contour?x=memori")
        assert (wrong.status, "Did you mean 'memory'?" in wrong.sentence) == (422, True)
        assert server.get("studies/own/contour?x=memory&y=memory").status == 422


def test_notes_are_events_of_the_storage(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    sample_study(tmp_path, "own", 1).storage.close()
    with served(address, tmp_path) as server:
        for text in ("first", "second"):
            server.post("studies/own/note", {"text": text})
    with Storage(address) as storage:
        kept = [event.detail for event in storage.events("own", kinds=["note"])]
    assert kept == [{"text": "first"}, {"text": "second"}]
