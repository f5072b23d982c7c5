"""A backup is the whole storage at one moment, in one file, and goes back into any database. Storages of every earlier version open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import MetaData, insert, select

from lynceus.errors import InfrastructureError, InputError
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import create_or_open
from lynceus.storage.access_token import Role
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.backup import back_up, restore
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.storage import Storage, upgrade
from lynceus.storage.sql.tokens import TokenStore
from sample_studies import drive, job_file

EARLIER = [f"{number:04d}" for number in range(1, int(migrate.HEAD))]


def filled(url: str, folder: Path, trials: int = 6) -> None:
    """A storage with a study that has finished, stopped and failed trials, and a token."""
    one = create_or_open(prepare_file(job_file(folder, "nightly")), url)
    drive(one, trials)
    TokenStore(one.storage).add("airflow", Role.RUNNER, by="ana", lasts_s=3600.0)
    one.storage.close()


def contents(url: str) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables."""
    engine, tables = open_engine(parse_address(url)), MetaData()
    try:
        with engine.connect() as connection:
            tables.reflect(connection)
            return {
                table.name: sorted((dict(row) for row in connection.execute(select(table)).mappings()), key=repr)
                for table in tables.sorted_tables
            }
    finally:
        engine.dispose()


def answers(url: str) -> list[object]:
    """What a reader sees of every study: its trials in order."""
    with Storage(url, create=False) as storage:
        return [
            (record.name, record.state, [(one.number, one.params, one.outcome) for one in storage.trials(record.name)])
            for record in storage.studies()
        ]


def test_a_backup_has_every_row_and_is_a_storage(url: str, tmp_path: Path) -> None:
    filled(url, tmp_path)
    copy = tmp_path / "copy.db"
    assert back_up(url, copy) == migrate.HEAD
    assert contents(f"sqlite:///{copy}") == contents(url)
    assert answers(f"sqlite:///{copy}") == answers(url)
    assert (copy.stat().st_mode & 0o777, [path.name for path in tmp_path.glob("*copy*")]) == (0o600, ["copy.db"])


def test_a_backup_goes_back_into_any_empty_database(url: str, tmp_path: Path) -> None:
    filled(f"sqlite:///{tmp_path}/first.db", tmp_path)
    copy = tmp_path / "copy.db"
    back_up(f"sqlite:///{tmp_path}/first.db", copy)
    assert restore(copy, url) == migrate.HEAD
    assert contents(url) == contents(f"sqlite:///{copy}")
    with Storage(url, create=False) as storage:  # numbers of new rows do not collide with copied ones
        storage.create_study("another", document={"name": "another"}, fingerprint="f" * 64, policy={"name": "sweep"})
        assert [record.name for record in storage.studies()] == ["nightly", "another"]
    with pytest.raises(InputError, match="it is not empty; a backup is restored into a new database only"):
        restore(copy, url)


@pytest.mark.parametrize("version", EARLIER)
def test_a_storage_of_every_earlier_version_is_backed_up_and_upgraded(version: str, url: str, tmp_path: Path) -> None:
    now = f"sqlite:///{tmp_path}/now.db"
    filled(now, tmp_path)
    rows = contents(now)
    engine, tables = open_engine(parse_address(url)), MetaData()
    migrate.upgrade(engine, url, to=version)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        tables.reflect(connection)
        for table in tables.sorted_tables:
            if table.name in rows and rows[table.name] and table.name != "alembic_version":
                given = set(table.columns.keys()) - ({"id"} if table.name == "audit" else set())  # the next id is free
                kept = [{key: row[key] for key in row if key in given} for row in rows[table.name]]
                connection.execute(insert(table), kept)
    engine.dispose()
    copy = tmp_path / "copy.db"
    assert back_up(url, copy) == version
    assert contents(f"sqlite:///{copy}")["trials"] == contents(url)["trials"]
    for address in (url, f"sqlite:///{copy}"):
        assert upgrade(address) == (version, migrate.HEAD)
        assert answers(address) == answers(now)
        with Storage(address, create=False) as storage:  # tables that came later are there, and empty
            assert TokenStore(storage).all() == ()
            assert TokenStore(storage).add("ana", Role.RUNNER, by="boss")[0].role is Role.RUNNER


def test_a_backup_while_others_write_is_one_moment(url: str, tmp_path: Path) -> None:
    """Every study comes with an event of the same transaction; a copy has both or neither."""
    with Storage(url) as storage:
        storage.create_study("0", document={}, fingerprint="f" * 64, policy={"name": "sweep"})
    writer = (
        "import sys; from lynceus.storage.sql.storage import Storage; s = Storage(sys.argv[1]); print('go', flush=True)\n"
        "for i in range(1, 10**6): s.create_study(str(i), document={}, fingerprint='f' * 64, policy={'name': 'sweep'})"
    )
    with subprocess.Popen([sys.executable, "-c", writer, url], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for number in range(3):
                copy = tmp_path / f"copy{number}.db"
                back_up(url, copy)
                found = contents(f"sqlite:///{copy}")
                assert {row["study_id"] for row in found["events"]} <= {row["id"] for row in found["studies"]}
                names = sorted(int(str(row["name"])) for row in found["studies"])
                assert names == list(range(len(names)))
        finally:
            process.kill()


def test_mistakes_are_one_sentence_and_change_nothing(tmp_path: Path) -> None:
    good = tmp_path / "good.db"
    filled(f"sqlite:///{good}", tmp_path, trials=1)
    before = good.read_bytes()
    (tmp_path / "taken.db").touch()
    (tmp_path / "text.db").write_text("no database at all")
    cases = [
        (f"sqlite:///{good}", "taken.db", "taken.db: the file exists already"),
        (f"sqlite:///{good}", "none/copy.db", "there is no folder"),
        (f"sqlite:///{tmp_path}/absent.db", "copy.db", "absent.db: there is no such file"),
        (f"sqlite:///{tmp_path}/text.db", "copy.db", "text.db is not a database"),
        ("sqlite://", "copy.db", "a database in memory cannot be copied"),
    ]
    for url, to, message in cases:
        with pytest.raises(InputError, match=message):
            back_up(url, tmp_path / to)
    assert good.read_bytes() == before
    assert not list(tmp_path.glob("*copy*"))


def test_a_damaged_storage_is_not_backed_up_as_if_it_were_whole(tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    filled(f"sqlite:///{file}", tmp_path)
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = int(database.execute("PRAGMA page_size").fetchone()[0])
        page = int(database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'trials'").fetchone()[0])
    database.close()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * pages)
        opened.write(b"\xff" * pages)
    with pytest.raises(InfrastructureError, match="damaged"):
        back_up(f"sqlite:///{file}", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def no_link(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_only_one_of_two_backups_gets_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    filled(f"sqlite:///{tmp_path}/now.db", tmp_path, trials=1)
    if not links:
        monkeypatch.setattr("os.link", no_link)
    ended: list[str] = []

    def copy() -> None:
        try:
            ended.append(back_up(f"sqlite:///{tmp_path}/now.db", tmp_path / "copy.db"))
        except InputError as error:
            ended.append(str(error))

    both = [threading.Thread(target=copy) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(text == migrate.HEAD for text in ended) == [False, True]


def test_a_backup_needs_no_links(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT and shares of Windows have none; a file that is there is not replaced there either."""
    filled(url, tmp_path, trials=2)
    monkeypatch.setattr("os.link", no_link)
    back_up(url, tmp_path / "copy.db")
    assert contents(f"sqlite:///{tmp_path}/copy.db") == contents(url)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="the file exists already"):
        back_up(url, tmp_path / "copy.db")


def test_a_backup_that_is_killed_leaves_no_empty_file_with_its_name(tmp_path: Path) -> None:
    """Also without links: until the copy is complete, nothing has the name."""
    filled(f"sqlite:///{tmp_path}/now.db", tmp_path, trials=1)
    script = (
        "import os, sys; from pathlib import Path; from lynceus.storage.sql.backup import back_up\n"
        "def refused(*_): raise PermissionError(1, 'Operation not permitted')\n"
        "def killed(*_): os._exit(9)\n"
        "os.link, os.replace, os.rename = refused, killed, killed\n"
        "back_up(sys.argv[1], Path(sys.argv[2]))"
    )
    copy = tmp_path / "copy.db"
    assert subprocess.run([sys.executable, "-c", script, f"sqlite:///{tmp_path}/now.db", str(copy)]).returncode == 9
    assert not copy.exists()
    back_up(f"sqlite:///{tmp_path}/now.db", copy)
    assert contents(f"sqlite:///{copy}") == contents(f"sqlite:///{tmp_path}/now.db")
