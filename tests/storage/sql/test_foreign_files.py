"""Opening a file that is no storage, or not of this version, changes nothing in it and beside it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.storage.sql.storage import Storage, upgrade

READERS: list[Callable[[str], object]] = [lambda url: Storage(url, create=False), Storage, upgrade]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(folder: Path, match: str, *, readers: list[Callable[[str], object]] = READERS) -> None:
    before = contents(folder)
    for reader in readers:
        with pytest.raises(InputError, match=match) as raised:
            reader(f"sqlite:///{folder}/s.db")
        assert "\n" not in str(raised.value)
        assert contents(folder) == before


def make(folder: Path, *statements: str) -> None:
    with sqlite3.connect(folder / "s.db") as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_a_database_of_another_program(tmp_path: Path) -> None:
    make(tmp_path, "CREATE TABLE users (name TEXT)", "INSERT INTO users VALUES ('x')")
    refused(tmp_path, r"belongs to another program \(its tables: users\); name another one")


def test_a_database_of_another_program_in_wal_mode(tmp_path: Path) -> None:
    make(tmp_path, "PRAGMA journal_mode=WAL", "CREATE TABLE users (name TEXT)")
    refused(tmp_path, "belongs to another program")


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without its index"])
def test_a_database_of_another_program_that_was_killed(tmp_path: Path, index: bool) -> None:
    """Its tables are in the log only; a reader that opened it as usual would write them into the file."""
    script = (
        "import os, sqlite3; d = sqlite3.connect('s.db'); d.execute('PRAGMA journal_mode=WAL');"
        "d.execute('CREATE TABLE users (name TEXT)'); d.commit(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    if not index:
        (tmp_path / "s.db-shm").unlink()
    assert (tmp_path / "s.db-wal").stat().st_size > 0
    refused(tmp_path, "belongs to another program")


def test_a_database_of_another_program_with_similar_tables(tmp_path: Path) -> None:
    make(
        tmp_path,
        "CREATE TABLE studies (study_id INTEGER)",
        "CREATE TABLE trials (trial_id INTEGER)",
        "CREATE TABLE alembic_version (version_num VARCHAR(32))",
        "INSERT INTO alembic_version VALUES ('v3.2.0.a')",
    )
    refused(tmp_path, "belongs to another program")


def test_a_storage_of_a_newer_version(tmp_path: Path) -> None:
    Storage(f"sqlite:///{tmp_path}/s.db").close()
    make(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    refused(tmp_path, r"version 9999, newer than this program's 0008; use the version of Lynceus that wrote it")
    make(tmp_path, "UPDATE alembic_version SET version_num = 'abc123'")
    refused(tmp_path, "version abc123, newer than this program's")


def test_a_storage_of_an_older_version_is_not_changed_by_readers(tmp_path: Path) -> None:
    Storage(f"sqlite:///{tmp_path}/s.db").close()
    make(tmp_path, "UPDATE alembic_version SET version_num = '0002'")
    refused(tmp_path, r"run: lynceus storage upgrade\.", readers=READERS[:2])


def test_text_and_empty_files(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("name: nightly\n" * 100)
    refused(tmp_path, r"s\.db is not a database")
    (tmp_path / "s.db").write_bytes(b"")
    refused(tmp_path, "it is empty", readers=READERS[:1])
    make(tmp_path, "PRAGMA user_version = 3")
    refused(tmp_path, "it is empty", readers=READERS[:1])
    Storage(f"sqlite:///{tmp_path}/s.db").close()  # a writer may fill it


def test_pipes_and_missing_files(tmp_path: Path) -> None:
    refused(tmp_path, "there is no such file", readers=READERS[:1])
    os.mkfifo(tmp_path / "s.db")
    refused(tmp_path, "is not a regular file")


def test_an_empty_server_database_is_left_empty_by_readers(url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("see above")
    with pytest.raises(InputError, match="it is empty"):
        Storage(url, create=False)
    Storage(url).close()
    Storage(url, create=False).close()
