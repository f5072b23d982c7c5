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
from lynceus.trial.stop import StopReason

FORMER = Path(__file__).parents[1] / "fixtures" / "v0.1"
NEXT = json.loads((FORMER / "next.json").read_text(encoding="utf-8"))


def opened(folder: Path, trials: int) -> Storage:
    """The storage, with so many trials in the budget of its job."""
    file = folder / "lynceus.db"
    text = (FORMER / "storage.sql").read_text(encoding="utf-8").replace("/srv/jobs", str(folder))
    with sqlite3.connect(file) as database:
        database.executescript(text.replace('"max_trials": 12', f'"max_trials": {trials}'))
    database.close()
    assert upgrade(f"sqlite:///{file}") == ("0003", HEAD)
    return Storage(f"sqlite:///{file}", create=False)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    # Version 0.1 confirmed with one trial more than the budget had.
    with opened(tmp_path, trials=13) as found:
        yield found


def test_every_study_is_there(storage: Storage) -> None:
    assert [record.name for record in storage.studies()] == list(NEXT)


@pytest.mark.parametrize("name", NEXT)
def test_a_study_goes_on_as_it_would_have(storage: Storage, name: str) -> None:
    study = open_record(storage, storage.load_study(name)).study
    grace_h = study.problem.billing.grace_s / 3600  # version 0.1 did not reserve the grace period
    asked = []
    while len(asked) < 2 and (trial := study.ask()) is not None:
        timeout = pytest.approx(trial.timeout, rel=1e-12)  # since Python 3.12, sums are more exact
        asked.append([trial.number, dict(trial.params), timeout])
        assert trial.max_charge_usd == pytest.approx(NEXT[name][len(asked) - 1][3] + grace_h * trial.price_usd_per_hour)
    assert asked == [expected[:3] for expected in NEXT[name]]


def test_a_confirmation_does_not_exceed_the_trials_of_the_budget(tmp_path: Path) -> None:
    with opened(tmp_path, trials=12) as found:
        study = open_record(found, found.load_study("pipeline")).study
        assert (len(study.observations), study.ask()) == (12, None)
        assert study.stopped is not None
        assert study.stopped.kind is StopReason.TRIALS


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
