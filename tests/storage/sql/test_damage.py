"""Damaged rows and odd text: one sentence that names study and trial; other studies stay readable."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from journal_cases import observation, order
from lynceus.errors import InfrastructureError, InputError
from lynceus.library.overview import overview_or_note
from lynceus.library.studies import studies_document
from lynceus.storage.serialization import DamagedRecordError
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget
from lynceus.trial.stop import Stopped, StopReason


@pytest.fixture
def two(storage: Storage) -> Storage:
    """A storage with two studies of two trials each."""
    for name in ("healthy", "hurt"):
        storage.create_study(name, document={}, fingerprint="f", policy={})
        journal = storage.journal(name)
        for number in range(2):
            journal.ordered(order(number), {})
            journal.settled(observation(number), {})
        journal.ordered(order(2), {})
    return storage


def change(storage: Storage, statement: str, **values: object) -> None:
    with storage._engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text(statement), values)


BAD_TRIALS = {
    "no JSON": ("outcome", "{nonsense"),
    "no object": ("outcome", "[1, 2]"),
    "missing field": ("outcome", '{"v": 1, "end": "finished", "seconds": 1}'),
    "wrong type": ("outcome", '{"v": 1, "end": "finished", "seconds": "x", "charged_usd": 1}'),
    "unknown end": ("outcome", '{"v": 1, "end": "x", "seconds": 1, "charged_usd": 1}'),
    "negative": ("outcome", '{"v": 1, "end": "finished", "seconds": -1, "charged_usd": 1}'),
    "order without a row": ("ordered", '{"v": 1, "number": 1}'),
    "row of another type": ("ordered", json.dumps({"v": 1, "number": 1, "row": "x", "cap_s": 1, "plan": {}})),
    "target": ("told", '"x"'),
}


def test_a_damaged_trial_is_named_and_others_stay_readable(two: Storage) -> None:
    hurt = two.load_study("hurt").id
    of_trial = "WHERE study_id = :study AND number = 1"
    for kind, (column, value) in BAD_TRIALS.items():
        if kind == "no JSON" and two.url.startswith("postgresql"):
            continue  # it refuses text that is no JSON
        (good,) = [row for row in _raw(two, column) if (row.study_id, row.number) == (hurt, 1)]
        change(two, f"UPDATE trials SET {column} = :value {of_trial}", value=value, study=hurt)
        for read in (two.journal, two.trials):
            with pytest.raises(
                DamagedRecordError, match=r"trial 1 of study 'hurt' in .* is damaged \(.*\); "
            ) as raised:
                read("hurt")
            assert "\n" not in str(raised.value), kind
            read("healthy")
        assert [one["name"] for one in studies_document(two)["studies"]] == ["hurt", "healthy"], kind
        assert two.totals("healthy").settled == 2
        change(two, f"UPDATE trials SET {column} = :value {of_trial}", value=good[2], study=hurt)
    two.journal("hurt")


def test_a_damaged_study_is_shown_as_damaged(two: Storage) -> None:
    bad = {"document": "[]", "policy": '"x"', "wish": "nonsense", "because": "nonsense"}
    for column, value in bad.items():
        change(two, f"UPDATE studies SET {column} = :value WHERE name = 'hurt'", value=value)
        records = {record.name: record for record in two.studies()}
        assert records["healthy"].damage is None
        assert "study 'hurt' in storage" in str(records["hurt"].damage)
        with pytest.raises(InfrastructureError, match=r"study 'hurt' in storage .* is damaged"):
            two.load_study("hurt")
        note = overview_or_note(two, records["hurt"], ()).note
        assert note is not None
        assert "is damaged" in note
        assert len(studies_document(two)["studies"]) == 2
        good = {"document": "{}", "policy": "{}", "wish": "run", "because": None}[column]
        change(two, f"UPDATE studies SET {column} = :value WHERE name = 'hurt'", value=good)


def test_wrong_types_in_a_sqlite_file(two: Storage) -> None:
    if two.url.startswith("postgresql"):
        pytest.skip("PostgreSQL keeps types")
    change(two, "UPDATE studies SET seen_s = 'soon', seed = x'00ff' WHERE name = 'hurt'")
    assert [record.damage is None for record in two.studies()] == [True, False]
    assert two.cursors()


def test_a_journal_stays_usable_when_a_read_fails(two: Storage) -> None:
    journal, hurt = two.journal("hurt"), two.load_study("hurt").id
    two.journal("hurt").settled(observation(2), {})
    (good,) = [trial for trial in _raw(two, "told") if trial.study_id == hurt and trial.number == 2]
    change(two, "UPDATE trials SET told = '[]' WHERE study_id = :study AND number = 2", study=hurt)
    for _ in range(2):
        with pytest.raises(DamagedRecordError):
            journal.refresh()
    change(two, "UPDATE trials SET told = :told WHERE study_id = :study AND number = 2", told=good.told, study=hurt)
    journal.refresh()
    assert [seen.order.number for seen in journal.record.observations] == [0, 1, 2]


ODD = "boom \0 \ud800 \x1b[2J \U0001f600"
SAFE = "boom � � \x1b[2J \U0001f600"


def test_text_that_no_database_can_keep_is_cleaned_where_it_is_written(storage: Storage) -> None:
    storage.create_study("nightly", document={"text": ODD}, fingerprint="f", policy={"name": ODD})
    journal = storage.journal("nightly")
    journal.ordered(order(0), {ODD: ODD})
    journal.launched(0, ODD)
    outcome = Outcome(End.FAILED, 1.0, 0.5, {ODD: 1.0}, reason=FailureReason.JOB, detail=ODD)
    assert journal.settled(Observation(order(0), outcome, TrainingTarget(1.0, {ODD: 1.0})), {ODD: ODD})
    journal.closed(Stopped(StopReason.USER, ODD))
    (trial,) = storage.trials("nightly")
    assert trial.outcome is not None
    assert (trial.outcome.detail, dict(trial.outcome.metrics), trial.ticket) == (SAFE, {SAFE: 1.0}, SAFE)
    assert (trial.params, storage.load_study("nightly").document) == ({SAFE: SAFE}, {"text": SAFE})
    assert storage.load_study("nightly").stopped == Stopped(StopReason.USER, SAFE)
    assert storage.totals("nightly").failed == 1
    storage.journal("nightly")


def test_text_that_is_in_a_storage_already_is_read(storage: Storage) -> None:
    """Sums that PostgreSQL cannot compute, because it cannot take the text apart, are computed here."""
    storage.create_study("nightly", document={}, fingerprint="f", policy={})
    journal = storage.journal("nightly")
    for number in range(3):
        journal.ordered(order(number), {})
        journal.settled(observation(number), {})
    facts = '{"v": 1, "end": "capped", "seconds": 2.0, "charged_usd": 0.25, "metrics": {"loss": 1}, "detail": "boom X"}'
    for odd in ("\\u0000", "\\ud800"):
        change(storage, "UPDATE trials SET outcome = :facts WHERE number = 1", facts=facts.replace("X", odd))
        totals = storage.totals("nightly")
        assert (totals.settled, totals.stopped_early, totals.spent_usd) == (3, 1, 1.25)
        runs = storage.comparable_runs("nightly", ["loss"])
        assert [(run.outcome.end, dict(run.outcome.metrics)) for run in runs][1] == (End.TIMEOUT, {"loss": 1.0})
        assert storage.journal("nightly").record.observations[1].outcome.detail == "boom �"


def test_a_seed_that_no_database_can_keep_is_refused(storage: Storage) -> None:
    for seed in (2**63, -1, 10**40):
        with pytest.raises(InputError, match=r"^seed is .*, but a whole number from 0 to 2\*\*63 - 1 is needed\.$"):
            storage.create_study("nightly", document={}, fingerprint="f", policy={}, seed=seed)
    assert storage.studies() == []
    storage.create_study("nightly", document={}, fingerprint="f", policy={}, seed=2**63 - 1)
    assert storage.load_study("nightly").seed == 2**63 - 1


def _raw(storage: Storage, column: str) -> list[Any]:
    with storage._engine.connect() as connection:
        wanted = f"SELECT study_id, number, CAST({column} AS TEXT) AS {column} FROM trials"
        return list(connection.execute(text(wanted)))
