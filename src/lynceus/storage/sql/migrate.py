"""Bring a storage's tables to the version that this program reads; refuse those that it does not, and databases of other programs."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, inspect, text

from lynceus.errors import InfrastructureError, InputError
from lynceus.storage.sql.engine import is_open_here

HEAD = "0008"
"""The newest version of the tables, as in `migrations/versions`."""
_TABLES = frozenset({"studies", "trials", "events", "settings"})
"""Every version has these; no other program that is known to us has all of them."""
_VERSIONS = "alembic_version"
_HEADER = b"SQLite format 3\0"
_PATIENCE_S = 5.0
"""How long to look again at a file that others are changing."""


def check_file(file: Path, shown_url: str, *, create: bool, older: bool = False) -> None:
    """Refuse a SQLite file that is no storage, or not of this version, without changing a byte of it or beside it.

    A file that this process has open is a storage; `ensure` looks at it through SQLite.
    """
    if is_open_here(file):
        return
    with file.open("rb") as opened:
        header = opened.read(len(_HEADER))
    if header and header != _HEADER:
        raise InputError(f"storage {shown_url}: {file} is not a database; name the file of a storage, or a new one.")
    if not header and not create:
        raise InputError(_empty(shown_url))
    if header:
        try:
            names, version = _look(file)
        except (sqlite3.Error, FileNotFoundError) as error:
            raise InfrastructureError(f"storage {shown_url}: {error}; restore the file from a backup.") from None
        _check(names, version, shown_url, create=create, older=older)


def ensure(engine: Engine, shown_url: str, *, create: bool = True) -> None:
    """Make the tables in an empty database; refuse older and newer ones."""
    with engine.connect() as connection:
        found = _found(connection)
    if _check(*found, shown_url, create=create) is None:
        upgrade(engine, shown_url)


def found_version(connection: Connection) -> str | None:
    """The version of the tables in a database; nothing when it holds no storage yet."""
    return _found(connection)[1]


def upgrade(engine: Engine, shown_url: str, to: str = "head") -> tuple[str | None, str]:
    """Migrate a database to this program's version; returns the versions before and after."""
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        return upgrade_within(connection, shown_url, to)


def upgrade_within(connection: Connection, shown_url: str, to: str = "head") -> tuple[str | None, str]:
    """The same as a part of a transaction that has begun."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    steps = ScriptDirectory(str(Path(__file__).with_name("migrations")))
    if connection.dialect.name == "postgresql":
        # Two processes may meet an empty database at the same moment; the second finds it made.
        connection.execute(text("SELECT pg_advisory_xact_lock(7621450339)"))
    before = _check(*_found(connection), shown_url, create=True, older=True)
    with EnvironmentContext(Config(), steps, fn=lambda found, _: steps._upgrade_revs(to, found)) as environment:
        environment.configure(connection=connection, render_as_batch=True)
        environment.run_migrations()
    after = found_version(connection)
    if after is None:
        raise InfrastructureError(f"storage {shown_url}: the tables could not be made.")
    return before, after


def _check(names: set[str], version: str | None, shown_url: str, *, create: bool, older: bool = False) -> str | None:
    """The version of a storage that this program may use; None for a database in which one may be made."""
    if version is None and not names & _TABLES:
        if not create:
            raise InputError(_empty(shown_url) if not names else _foreign(names, shown_url))
        if names and shown_url.startswith(
            "sqlite"
        ):  # a file belongs to one program; a server's database may hold several
            raise InputError(_foreign(names, shown_url))
        return None
    if version is None or not names >= _TABLES:
        raise InputError(_foreign(names, shown_url))
    if not (version.isdecimal() and len(version) == len(HEAD)) or version > HEAD:
        raise InputError(
            f"storage {shown_url}: its tables have version {version[:40]}, newer than this program's {HEAD}; "
            "use the version of Lynceus that wrote it, or a newer one."
        )
    if version < HEAD and not older:
        raise InputError(
            f"storage {shown_url}: its tables have version {version}, this program needs {HEAD}; run: lynceus storage upgrade."
        )
    return version


def _found(connection: Connection) -> tuple[set[str], str | None]:
    """The names of all tables, and the version that they say they have."""
    names = set(inspect(connection).get_table_names())
    if _VERSIONS not in names:
        return names, None
    version = connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalar()
    return names, None if version is None else str(version)


def _look(file: Path) -> tuple[set[str], str | None]:
    """The same of a SQLite file, read only: nothing is written to it or beside it.

    Other processes may write to it, close it, or be killed meanwhile: then look again.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _look_once(file)
        except (sqlite3.OperationalError, FileNotFoundError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _look_once(file: Path) -> tuple[set[str], str | None]:
    log, index = (file.with_name(file.name + ending) for ending in ("-wal", "-shm"))
    if not log.exists():
        return _read(file, "immutable=1")
    if index.exists():
        with contextlib.suppress(
            sqlite3.OperationalError
        ):  # its writer was killed, and nobody has recovered the index since
            return _read(file, "readonly_shm=1")
    with tempfile.TemporaryDirectory() as folder:  # SQLite would write the index
        for part in (file, log):
            shutil.copyfile(part, Path(folder) / part.name)
        return _read(Path(folder) / file.name, "")


def _read(file: Path, option: str) -> tuple[set[str], str | None]:
    connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&{option}", uri=True, timeout=10.0)
    try:
        wanted = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        names = {str(name) for (name,) in connection.execute(wanted)}
        if _VERSIONS not in names:
            return names, None
        row = connection.execute(f"SELECT version_num FROM {_VERSIONS}").fetchone()
        return names, None if row is None else str(row[0])
    finally:
        connection.close()


def _empty(shown_url: str) -> str:
    return f"storage {shown_url}: it is empty; check --storage, or run a study first."


def _foreign(names: set[str], shown_url: str) -> str:
    some = ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "")
    return f"storage {shown_url}: this database belongs to another program (its tables: {some}); name another one."
