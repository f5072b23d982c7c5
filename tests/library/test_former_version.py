"""Storages and job files written by version 0.1 open, and their studies go on as they would have."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.library.open_study import open_record
from lynceus.storage.sql.migrate import HEAD
from lynceus.storage.sql.storage import Storage, upgrade
from lynceus.trial.order import Purpose

FORMER = Path(__file__).parents[1] / "fixtures" / "v0.1"
NEXT = json.loads((FORMER / "next.json").read_text(encoding="utf-8"))


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    file = tmp_path / "lynceus.db"
    with sqlite3.connect(file) as database:
        database.executescript((FORMER / "storage.sql").read_text(encoding="utf-8").replace("/srv/jobs", str(tmp_path)))
    database.close()
    assert upgrade(f"sqlite:///{file}") == ("0003", HEAD)
    with Storage(f"sqlite:///{file}", create=False) as found:
        yield found


def test_every_study_is_there(storage: Storage) -> None:
    assert [record.name for record in storage.studies()] == list(NEXT)


@pytest.mark.parametrize("name", NEXT)
def test_a_study_goes_on_as_it_would_have(storage: Storage, name: str) -> None:
    study = open_record(storage, storage.load_study(name)).study
    grace_h = study.problem.billing.grace_s / 3600  # version 0.1 did not reserve the grace period
    asked = []
    while len(asked) < 2 and (trial := study.ask()) is not None:
        asked.append([trial.number, dict(trial.params), trial.timeout])
        assert trial.max_charge_usd == pytest.approx(NEXT[name][len(asked) - 1][3] + grace_h * trial.price_usd_per_hour)
    assert asked == [expected[:3] for expected in NEXT[name]]


def test_the_purpose_of_a_run_is_known_from_its_former_text(storage: Storage) -> None:
    purposes = {name: _purpose_of_next(storage, name) for name in NEXT}
    assert purposes["pipeline"] is Purpose.CONFIRM
    assert purposes["lynceus"] is Purpose.QUEUE


def _purpose_of_next(storage: Storage, name: str) -> Purpose:
    open_record(storage, storage.load_study(name)).study.ask()
    again = storage.journal(name)  # read back from the database
    return again.record.pending[-1].plan.purpose


def test_a_job_file_is_read(tmp_path: Path) -> None:
    assert len(prepare(Job.read(str(FORMER / "job.yaml"))).problem.space) == 27
