"""`lynceus delete` and `lynceus rename`: what they remove, what they refuse, and that a kill in between loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_jobs import SLOW, started
from local_runs import processes_below
from lynceus.executors.interface import Request
from lynceus.executors.run_directory import directory_of
from lynceus.executors.supervisor import files
from lynceus.library.delete_study import delete_study
from lynceus.library.load_study import load_study
from lynceus.library.rename_study import rename_study
from lynceus.storage.sql.storage import Storage, StudyBusyError, StudyExistsError

pytestmark = pytest.mark.usefixtures("here")


def names(lynceus) -> list[str]:
    return [one["name"] for one in json.loads(lynceus("status", "-o", "json")[1])]


def test_delete_asks_first_and_removes_study_and_run_directories(here: Path, lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    assert len(list(here.glob(".lynceus/toy-*/*"))) >= 6
    code, _, err = lynceus("delete", "toy")
    assert (code, "add -y" in err, names(lynceus)) == (2, True, ["toy"])
    code, out, _ = lynceus("delete", "job.yaml", "-y", "-o", "json")
    gone = json.loads(out)
    assert (code, gone["study"], gone["trials"], gone["left"]) == (0, "toy", 6, None)
    assert not (here / ".lynceus").exists()
    assert names(lynceus) == []
    code, _, err = lynceus("delete", "toy", "-y")
    assert (code, "'toy' is not in" in err, err.count("\n")) == (2, True, 1)


def test_a_study_with_open_trials_is_deleted_only_by_force(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    code, _, err = lynceus("delete", "toy", "-y")
    assert (code, "has 1 open trial" in err, "lynceus stop toy" in err) == (2, True, True)
    code, _, err = lynceus("rename", "toy", "other")
    assert (code, "has 1 open trial" in err) == (2, True)
    assert names(lynceus) == ["toy"]
    code, out, err = lynceus("delete", "toy", "-y", "--force")
    assert (code, "toy: deleted" in out, err) == (0, True, "")
    out, _ = process.communicate(timeout=60)
    assert "Traceback" not in out
    assert not (here / ".lynceus").exists()
    assert not processes_below(here)
    assert names(lynceus) == []


def test_a_worker_that_was_killed_does_not_block_a_deletion_for_long(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y", job=SLOW)
    process.kill()
    process.communicate()
    assert lynceus("delete", "toy", "-y")[0] == 2, "its trial still runs"
    assert lynceus("delete", "toy", "-y", "--force")[0] == 0
    assert not processes_below(here)


@pytest.mark.parametrize("delay_s", [0.0, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.01, 0.03))])
def test_a_deletion_that_is_killed_is_finished_by_the_next_one(here: Path, lynceus, delay_s: float) -> None:
    lynceus("run", "job.yaml", "-y")
    with Storage("sqlite:///lynceus.db") as storage:
        identity = storage.load_study("toy").identity
    for number in range(6, 200):  # so many that the kill comes in between
        folder = directory_of(here / ".lynceus", Request("toy", number, 0, {}, 1.0, True, identity))
        folder.mkdir()
        owner = {"v": 1, "study": "toy", "identity": identity, "number": number}
        (folder / files.MARKER).write_text(json.dumps(owner))
    command = [sys.executable, "-m", "lynceus.cli", "delete", "toy", "-y"]
    deletion = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = here / ".lynceus" / f"toy-{identity}" / "0"
    while first.exists() and deletion.poll() is None:
        time.sleep(0.001)
    time.sleep(delay_s)
    deletion.kill()
    deletion.wait()
    if names(lynceus):  # otherwise it was quicker
        facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
        assert (facts["state"], "delete it again" in facts["reason"]) == ("STOPPED", True)
        assert lynceus("delete", "toy", "-y")[0] == 0
    assert names(lynceus) == []
    assert not (here / ".lynceus").exists()


def test_a_renamed_study_keeps_its_trials_outputs_and_identity(here: Path, lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    before = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    output = lynceus("logs", "toy", "0")[1]
    code, out, _ = lynceus("rename", "toy", "weekly")
    assert (code, "name: weekly" in out) == (0, True)
    assert json.loads(lynceus("trials", "weekly", "-o", "json")[1]) == before
    assert lynceus("logs", "weekly", "0")[1] == output != ""
    assert lynceus("trials", "toy")[0] == 2
    assert json.loads(lynceus("gc", "--strangers", "-o", "json")[1])["leftovers"] == [], (
        "its folder is not a stranger's"
    )
    (here / "job.yaml").write_text((here / "job.yaml").read_text().replace("name: toy", "name: weekly"))
    assert "continuing with 6 trials" in lynceus("run", "job.yaml", "-y")[2]
    assert lynceus("resume", "weekly", "--add-budget", "1 USD")[0] == 0
    assert lynceus("delete", "weekly", "-y")[0] == 0
    assert not (here / ".lynceus").exists()


def test_a_taken_or_bad_name_is_refused(here: Path, lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "other.yaml").write_text((here / "job.yaml").read_text().replace("name: toy", "name: other"))
    lynceus("run", "other.yaml", "-y")
    for new, said in (
        ("other", "exists already"),
        ("toy", "has that name already"),
        ("a/b", "starting with a letter or digit"),
    ):
        code, _, err = lynceus("rename", "toy", new)
        assert (code, said in err, err.count("\n")) == (2, True, 1)
    assert names(lynceus) == ["toy", "other"]


def test_what_cannot_be_read_is_deleted_by_force(here: Path, lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    import sqlite3

    with sqlite3.connect("lynceus.db") as connection:
        connection.execute("UPDATE studies SET document = '[]'")
    connection.close()
    code, _, err = lynceus("delete", "toy", "-y")
    assert (code, "cannot be read" in err, err.count("\n")) == (2, True, 1)
    code, out, err = lynceus("delete", "toy", "-y", "--force")
    assert (code, "deleted" in out, "something may be left" in err) == (0, True, True)


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "sqlite":
        return Storage(f"sqlite:///{tmp_path}/studies.db")
    return Storage(request.getfixturevalue("postgres").database(f"test-delete-{os.getpid()}"))


def test_in_every_database(storage: Storage) -> None:
    import lynceus

    with storage:
        space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.1 * nodes")
        made = {"space": space, "budget": "$1", "storage": storage, "policy": "sweep"}
        studies = [lynceus.create_study(study_name=name, **made) for name in ("one", "two")]
        for study in studies:
            trial = study.ask()
            with pytest.raises(StudyBusyError, match="open trial"):
                rename_study(storage, study.name, "three")
            study.tell(trial, runtime=10.0)
            study.stop()
        with pytest.raises(StudyExistsError):
            rename_study(storage, "one", "two")
        identity = storage.load_study("one").identity
        assert rename_study(storage, "one", "three").identity == identity
        with pytest.raises(lynceus.InputError, match="it is called 'three' now"):
            studies[0].resume()
        assert len(load_study(study_name="three", storage=storage).trials) == 1
        storage.set_setting(f"outage of study {storage.load_study('three').id}", '{"detail": "x", "since_s": 0}')
        assert delete_study(storage, "three").trials == 1
        assert [record.name for record in storage.studies()] == ["two"]
        with pytest.raises(lynceus.InputError, match="deleted"):
            studies[0].resume()
        again = lynceus.create_study(study_name="three", **made)
        assert again.trials == []
        assert storage.setting(f"outage of study {storage.load_study('three').id}") is None
