from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from journal_cases import observation, order
from lynceus.errors import InfrastructureError, InputError
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.storage import Storage, upgrade
from lynceus.storage.sql.tables import metadata


def create_study(storage: Storage, name: str = "nightly") -> None:
    storage.create_study(name, document={"name": name, "é": [1]}, fingerprint="f", policy={"name": "x"}, seed=2**40)


def test_a_study_can_be_loaded_after_reopening(storage: Storage, url: str) -> None:
    create_study(storage)
    with Storage(url, create=False) as reopened:
        record = reopened.load_study("nightly")
        assert (record.document, record.policy, record.seed) == ({"name": "nightly", "é": [1]}, {"name": "x"}, 2**40)
        assert (record.state, record.trials, record.settled) == ("RUNNING", 0, 0)
        assert [one.name for one in reopened.studies()] == ["nightly"]


def test_study_names_are_unique(storage: Storage) -> None:
    create_study(storage)
    with pytest.raises(InputError, match=r"'nightly' exists already .* lynceus resume nightly"):
        create_study(storage)
    with pytest.raises(InputError, match=r"'nightli' is not in .* known are: nightly.*Did you mean 'nightly'\?"):
        storage.load_study("nightli")


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 201, "a\0b"])
def test_invalid_study_names_are_rejected(storage: Storage, name: str) -> None:
    with pytest.raises(InputError, match="study name"):
        create_study(storage, name)


def test_deleting_a_study_deletes_its_trials_and_frees_its_name(storage: Storage) -> None:
    create_study(storage)
    first = storage.journal("nightly")
    first.ordered(order(0), {"a": "b c"})
    storage.delete_study("nightly")
    assert storage.studies() == []
    create_study(storage)
    second = storage.journal("nightly")
    assert (second.record.observations, second.record.pending) == ((), ())
    assert second.record.identity != first.record.identity


def test_trials_and_events_have_timestamps_in_order(storage: Storage) -> None:
    create_study(storage)
    journal = storage.journal("nightly")
    journal.ordered(order(0), {"a": "b c"})
    journal.launched(0, "there")
    journal.settled(observation(0), {"a": "b c"})
    (trial,) = storage.trials("nightly")
    assert (trial.number, trial.params, trial.ticket, trial.rank) == (0, {"a": "b c"}, "there", 0)
    assert trial.launched_s is not None
    assert trial.settled_s is not None
    assert trial.ordered_s <= trial.launched_s <= trial.settled_s
    assert [event.kind for event in storage.events("nightly")] == ["created", "ordered", "launched", "settled"]
    assert storage.trials("nightly", 5) == []


def test_settings_are_stored_and_overwritten(storage: Storage) -> None:
    assert storage.setting("token") is None
    storage.set_setting("token", "1")
    storage.set_setting("token", "2")
    assert storage.setting("token") == "2"


def test_migrations_create_the_tables_of_the_metadata(storage: Storage) -> None:
    found = inspect(storage._engine)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
        assert columns == {column.name: column.nullable for column in table.columns}, name
    assert "trials_by_sequence" in {index["name"] for index in found.get_indexes("trials")}


def test_an_older_storage_must_be_upgraded_and_keeps_its_data(url: str) -> None:
    engine = open_engine(parse_address(url))
    migrate.upgrade(engine, url, to="0001")
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text(
                "INSERT INTO studies (name, identity, created_s, document, fingerprint, policy, seed, sequence, settled,"
                " wish, resumed_at, added_usd, active_s, seen_s)"
                " VALUES ('old', 'i', 0, '{}', 'f', '{}', 0, 0, 0, 'run', 0, 0, 0, 0)"
            )
        )
    with pytest.raises(InputError, match=r"version 0001, this program needs 0008; run: lynceus storage upgrade\."):
        Storage(url)
    assert upgrade(url) == ("0001", migrate.HEAD)
    assert upgrade(url) == (migrate.HEAD, migrate.HEAD)
    with Storage(url) as storage:
        assert storage.journal("old").record.queue == ()
    engine.dispose()


def test_a_newer_storage_is_rejected(url: str) -> None:
    Storage(url).close()
    engine = open_engine(parse_address(url))
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for open_storage in (Storage, upgrade):
        with pytest.raises(
            InputError, match=r"version 9999, newer than this program's 0008; use the version of Lynceus"
        ):
            open_storage(url)
    engine.dispose()


def test_the_newest_migration_is_the_head() -> None:
    folder = Path(migrate.__file__).with_name("migrations") / "versions"
    assert max(path.stem[1:5] for path in folder.glob("r*.py")) == migrate.HEAD


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "is not a database address; write for example sqlite:///lynceus.db"),
        ("mysql://host/db", "'mysql' is not supported"),
        ("sqlite:////no/such/folder/x.db", "there is no folder /no/such/folder"),
    ],
)
def test_invalid_addresses_are_rejected(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Storage(address)


def test_folders_and_read_only_places_are_rejected(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        Storage(f"sqlite:///{tmp_path}")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="cannot be written; choose another place"):
        Storage(f"sqlite:///{tmp_path}/lynceus.db")


def test_readers_do_not_create_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        Storage(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_an_unreachable_server_hides_the_password() -> None:
    with pytest.raises(InfrastructureError) as raised:
        Storage("postgresql+psycopg://me:hush@127.0.0.1:1/db")
    assert "\n" not in str(raised.value)
    assert "hush" not in str(raised.value)


def test_sqlite_uses_wal_full_sync_and_foreign_keys(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage, storage._engine.connect() as connection:
        values = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")]
        assert values == ["wal", 2]
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1


def test_a_file_that_is_not_a_database_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"not a database, but long enough to be read" * 99)
    with pytest.raises(InputError, match=r"s\.db is not a database; name the file of a storage, or a new one"):
        Storage(f"sqlite:///{tmp_path}/s.db")
