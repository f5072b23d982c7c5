"""A copy of a whole storage in one SQLite file, taken while others write to it; the copy is a storage itself."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import JSON, Connection, Engine, MetaData, Table, func, insert, select, text

from lynceus.errors import InfrastructureError, InputError
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import Address, parse_address
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.transaction import database_errors

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_BATCH = 1000
"""Rows that are copied at a time."""


def back_up(url: str, to: Path) -> str:
    """Copy the storage at `url`, of this or an earlier version, into the new file `to`; returns the version of its tables.

    The copy is the storage as it was at one moment. A backup that fails leaves no file behind.
    """
    source = parse_address(url)
    _check_source(source)
    taken = InputError(f"{to}: the file exists already; a backup never replaces one, choose another name.")
    if to.exists():
        raise taken
    if not to.parent.is_dir():
        raise InputError(f"{to}: there is no folder {to.parent}; make it first.")
    with tempfile.TemporaryDirectory(
        dir=to.parent, prefix=f".{to.name}."
    ) as folder:  # links work within one file system
        part = Path(folder) / "part.db"
        with database_errors(source, "nothing was copied"), _engine(source) as engine, engine.connect() as reading:
            version = _copy_pages(reading, source, part) if source.is_sqlite else _copy_tables(reading, source, part)
        os.chmod(part, 0o600)
        try:
            _put_in_place(part, to)
        except FileExistsError:  # another backup was faster
            raise taken from None
    return version


def _put_in_place(part: Path, to: Path) -> None:
    """Give a complete file its name; `FileExistsError` if another file has it."""
    try:
        os.link(part, to)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: FAT, shares of Windows
        with _alone_in(to.parent):
            if to.exists():
                raise FileExistsError(to) from None
            os.rename(part, to)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other backups from giving a file in this folder its name; the system ends that with this process, however it ends."""
    if fcntl is None:  # Windows, where renaming never replaces a file
        yield
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks, too
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def restore(file: Path, url: str) -> str:
    """Fill the empty database at `url` with a backup; returns the version of its tables. It is all there, or nothing is."""
    source, target = parse_address(f"sqlite:///{file}"), parse_address(url)
    _check_source(source)
    with database_errors(target, "nothing was restored"), _engine(source) as engine, _engine(target) as filled:
        with filled.connect() as looking:
            if migrate.found_version(looking) is not None:
                raise InputError(
                    f"storage {target.shown}: it is not empty; a backup is restored into a new database only."
                )
        with engine.connect() as reading:
            version = _known_version(reading, source)
            with filled.connect().execution_options(writing=True) as writing, writing.begin():
                migrate.upgrade_within(writing, target.shown, to=version)
                _copy_rows(reading, writing)
    return version


def _check_source(source: Address) -> None:
    if source.is_sqlite and source.file is None:
        raise InputError(f"storage {source.shown}: a database in memory cannot be copied; name a file or a server.")
    if source.file is not None:
        if not Path(source.file).is_file():
            raise InputError(f"storage {source.shown}: there is no such file; check the name.")
        migrate.check_file(Path(source.file), source.shown, create=False, older=True)


@contextmanager
def _engine(address: Address) -> Iterator[Engine]:
    engine = open_engine(address)
    try:
        yield engine
    finally:
        engine.dispose()


def _copy_pages(reading: Connection, source: Address, to: Path) -> str:
    """SQLite's online backup: other processes go on writing."""
    version = _known_version(reading, source)
    damage = reading.execute(text("PRAGMA quick_check(1)")).scalar()
    if damage != "ok":
        raise InfrastructureError(f"storage {source.shown}: the file is damaged ({damage}); restore an earlier backup.")
    raw = reading.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    with closing(sqlite3.connect(to)) as target:
        raw.backup(target, pages=4096)
        target.execute("PRAGMA journal_mode=DELETE").close()  # one file, no log beside it
    return version


def _copy_tables(reading: Connection, source: Address, to: Path) -> str:
    """All rows of a server's tables, seen at one moment, into new tables of the same version."""
    reading = reading.execution_options(isolation_level="REPEATABLE READ")
    version = _known_version(reading, source)
    with _engine(parse_address(f"sqlite:///{to}")) as engine:
        with engine.connect().execution_options(writing=True) as writing, writing.begin():
            migrate.upgrade_within(writing, str(to), to=version)
            _copy_rows(reading, writing)
        with closing(engine.raw_connection()) as raw:
            raw.cursor().execute("PRAGMA journal_mode=DELETE")
    return version


def _copy_rows(reading: Connection, writing: Connection) -> None:
    """Every table that the target has, in an order that keeps references valid."""
    target, source = _tables(writing), _tables(reading)
    for table in target.sorted_tables:
        rows = reading.execution_options(stream_results=True).execute(select(source.tables[table.name]))
        writing.execute(table.delete())  # what the migrations themselves wrote
        for some in rows.mappings().partitions(_BATCH):
            writing.execute(insert(table), [dict(row) for row in some])
        if writing.dialect.name == "postgresql":
            _advance_sequence(writing, table)


def _tables(connection: Connection) -> MetaData:
    """The tables as they are, whatever their version; absent values stay absent instead of becoming the JSON text null."""
    found = MetaData()
    found.reflect(connection)
    for column in (column for table in found.tables.values() for column in table.columns):
        if isinstance(column.type, JSON):
            column.type = JSON(none_as_null=True)
    return found


def _advance_sequence(writing: Connection, table: Table) -> None:
    """The next number that the server gives to a row comes after all copied ones."""
    key = next(iter(table.primary_key), None)
    if key is None or len(table.primary_key) != 1:
        return
    sequence = writing.execute(select(func.pg_get_serial_sequence(table.name, key.name))).scalar()
    if sequence is not None:
        last = writing.execute(select(func.max(key))).scalar()
        writing.execute(select(func.setval(sequence, last or 1, last is not None)))


def _known_version(reading: Connection, source: Address) -> str:
    version = migrate.found_version(reading)
    if version is None:
        raise InputError(f"storage {source.shown}: it is empty; there is nothing to copy.")
    if not version.isdecimal() or version > migrate.HEAD:
        raise InputError(
            f"storage {source.shown}: its tables have version {version[:40]}, newer than this program's {migrate.HEAD}; "
            "copy it with the version of Lynceus that wrote it, or a newer one."
        )
    return version
