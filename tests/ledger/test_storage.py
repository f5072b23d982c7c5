from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from ledger_cases import order, seen
from lynceus.errors import InfrastructureError, InputError
from lynceus.ledger import migrate
from lynceus.ledger.schema import metadata
from lynceus.ledger.sql import Storage, _engine, _parsed, upgrade


def new(storage: Storage, name: str = "nightly") -> None:
    storage.create_study(name, document={"name": name, "é": [1]}, fingerprint="f", policy={"name": "x"}, seed=2**40)


def test_a_study_is_found_again(storage: Storage, url: str) -> None:
    new(storage)
    with Storage(url, create=False) as again:
        record = again.load_study("nightly")
        assert (record.document, record.policy, record.seed) == ({"name": "nightly", "é": [1]}, {"name": "x"}, 2**40)
        assert (record.state, record.trials, record.settled) == ("RUNNING", 0, 0)
        assert [one.name for one in again.studies()] == ["nightly"]


def test_names_are_free_once(storage: Storage) -> None:
    new(storage)
    with pytest.raises(InputError, match=r"'nightly' exists already .* lynceus resume nightly"):
        new(storage)
    with pytest.raises(InputError, match=r"'weekly' is not in .* known are: nightly"):
        storage.load_study("weekly")


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 201, "a\0b"])
def test_odd_names_are_refused(storage: Storage, name: str) -> None:
    with pytest.raises(InputError, match="study name"):
        new(storage, name)


def test_a_deleted_study_takes_its_trials_along_and_returns_as_another(storage: Storage) -> None:
    new(storage)
    first = storage.ledger("nightly")
    first.ordered(order(0), {"a": "b c"})
    storage.delete_study("nightly")
    assert storage.studies() == []
    new(storage)
    second = storage.ledger("nightly")
    assert (second.history, second.pending) == ((), ())
    assert second.identity != first.identity


def test_trials_and_the_journal_tell_what_happened_when(storage: Storage) -> None:
    new(storage)
    ledger = storage.ledger("nightly")
    ledger.ordered(order(0), {"a": "b c"})
    ledger.launched(0, "there")
    ledger.settled(seen(0), {"a": "b c"})
    (trial,) = storage.trials("nightly")
    assert (trial.number, trial.params, trial.ticket, trial.rank) == (0, {"a": "b c"}, "there", 0)
    assert trial.launched_s is not None
    assert trial.settled_s is not None
    assert trial.ordered_s <= trial.launched_s <= trial.settled_s
    assert [event.kind for event in storage.events("nightly")] == ["created", "ordered", "launched", "settled"]
    assert storage.trials("nightly", 5) == []


def test_settings_are_kept(storage: Storage) -> None:
    assert storage.setting("token") is None
    storage.set_setting("token", "1")
    storage.set_setting("token", "2")
    assert storage.setting("token") == "2"


def test_migrations_lead_to_the_tables_that_the_program_reads(storage: Storage) -> None:
    found = inspect(storage._engine)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
        assert columns == {column.name: column.nullable for column in table.columns}, name
    assert "trials_by_sequence" in {index["name"] for index in found.get_indexes("trials")}


def test_an_older_storage_is_refused_and_upgraded_with_its_content(url: str) -> None:
    engine = _engine(_parsed(url))
    migrate.upgrade(engine, url, to="0001")
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text(
                "INSERT INTO studies (name, identity, created_s, document, fingerprint, policy, seed, sequence, settled,"
                " wish, resumed_at, added_usd, active_s, seen_s)"
                " VALUES ('old', 'i', 0, '{}', 'f', '{}', 0, 0, 0, 'run', 0, 0, 0, 0)"
            )
        )
    with pytest.raises(InputError, match=r"version 0001, this program needs 0003; run: lynceus storage upgrade\."):
        Storage(url)
    assert upgrade(url) == ("0001", migrate.HEAD)
    assert upgrade(url) == (migrate.HEAD, migrate.HEAD)
    with Storage(url) as storage:
        assert storage.ledger("old").queue == ()
    engine.dispose()


def test_a_newer_storage_is_refused(url: str) -> None:
    Storage(url).close()
    engine = _engine(_parsed(url))
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for use in (Storage, upgrade):
        with pytest.raises(
            InputError, match=r"version 9999, newer than this program's 0003; use the version of Lynceus"
        ):
            use(url)
    engine.dispose()


def test_the_newest_migration_is_the_head() -> None:
    folder = Path(migrate.__file__).with_name("migrations") / "versions"
    assert max(path.stem[1:5] for path in folder.glob("r*.py")) == migrate.HEAD


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense", "is not a database address; write for example sqlite:///lynceus.db"),
        ("mysql://host/db", "'mysql' is not supported"),
        ("sqlite:////no/such/folder/x.db", "there is no folder /no/such/folder"),
    ],
)
def test_a_wrong_address_is_explained(address: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Storage(address)


def test_a_folder_and_one_that_cannot_be_written_are_explained(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        Storage(f"sqlite:///{tmp_path}")
    monkeypatch.setattr("os.access", lambda place, mode: False)
    with pytest.raises(InputError, match="cannot be written; choose another place"):
        Storage(f"sqlite:///{tmp_path}/lynceus.db")


def test_a_missing_file_is_not_made_by_readers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        Storage(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_server_is_one_sentence_without_the_password() -> None:
    with pytest.raises(InfrastructureError) as raised:
        Storage("postgresql+psycopg://me:hush@127.0.0.1:1/db")
    assert "\n" not in str(raised.value)
    assert "hush" not in str(raised.value)


def test_sqlite_is_kept_safely(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage, storage._engine.connect() as connection:
        values = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")]
        assert values == ["wal", 2]
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1


def test_a_file_that_is_no_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"not a database, but long enough to look at" * 99)
    with pytest.raises(InfrastructureError, match="file is not a database"):
        Storage(f"sqlite:///{tmp_path}/s.db")
