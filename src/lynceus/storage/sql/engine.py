"""Connections to the database of a storage, with what each kind of database needs."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Pool, create_engine, event

from lynceus.errors import InputError
from lynceus.storage.forks import renew_after_fork
from lynceus.storage.serialization import of_json_text, to_json_text
from lynceus.storage.sql.address import Address

BUSY_S = 120.0
"""How long SQLite waits for another process that decides; a deep look-ahead takes seconds."""
_Inode = tuple[int, int]
_CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A PostgreSQL server that vanishes from the network is noticed within half a minute (seconds, but for the last one: milliseconds)."""
_OF_PARENTS: list[Pool] = []
"""Connections that a forked child inherited. They are never used or closed here: the parent goes on using them."""

_OPEN_FILES: Counter[_Inode] = Counter()
"""How many connections of this process each SQLite file has, by its device and inode."""

_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Engines in use. The program closes their connections when it ends."""


def is_open_here(file: Path) -> bool:
    """Whether this process has connections to a SQLite file. Then nothing but SQLite may open it: closing any other descriptor drops the
    locks of all of them, and another process that takes itself for the last one would delete the log into which they write."""
    return _OPEN_FILES[_inode(file)] > 0


def open_engine(address: Address, connections: int = 2) -> Engine:
    """An engine; `connections` are kept open to a PostgreSQL server.

    Its connections are closed by `dispose`, when the engine is garbage collected, and when the program ends.
    """
    json: dict[str, Any] = {"json_serializer": to_json_text, "json_deserializer": of_json_text}
    if not address.is_sqlite:
        given = {name: value for name, value in _CONNECTION.items() if name not in address.url.query}
        engine = create_engine(address.url, pool_pre_ping=True, pool_size=connections, connect_args=given, **json)
        _close_when_unused(engine)
    elif address.file is None:
        engine = create_engine(address.url, **json)
        _close_when_unused(engine, forks=False)
        _refuse_other_threads(engine)
        _configure_sqlite(engine)
    else:
        engine = create_engine(address.url, connect_args={"timeout": BUSY_S}, **json)
        _close_when_unused(engine, Path(address.file))
        _configure_sqlite(engine)
    return engine


def _refuse_other_threads(engine: Engine) -> None:
    """A database in memory is one connection, which belongs to one thread; another one would find it empty."""
    made: list[int] = []

    @event.listens_for(engine, "connect")
    def check(connection: Any, record: Any) -> None:
        if made and made[0] != threading.get_ident():
            raise InputError(
                "storage sqlite://: a database in memory belongs to one thread; name a file, or use a study in memory."
            )
        made.append(threading.get_ident())


def _configure_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we begin transactions ourselves
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _close_when_unused(engine: Engine, file: Path | None = None, *, forks: bool = True) -> None:
    """Close the connections of an engine that is garbage collected, or in use when the program ends. Those to a SQLite file are counted.

    A child that is forked leaves the connections to its parent, unless the database is in memory.
    """
    opened: dict[Any, _Inode | None] = {}

    @event.listens_for(engine, "connect")
    def note(connection: Any, record: Any) -> None:
        opened[connection] = None
        if file is not None:
            connection.execute("SELECT count(*) FROM sqlite_master").close()  # SQLite opens the file no earlier
            opened[connection] = inode = _inode(file)
            _OPEN_FILES[inode] += 1

    @event.listens_for(engine, "close")
    def forget(connection: Any, record: Any) -> None:
        if (inode := opened.pop(connection, None)) is not None:
            _OPEN_FILES[inode] -= 1

    def leave(engine: Engine) -> None:
        opened.clear()
        _OF_PARENTS.append(engine.pool)
        engine.dispose(close=False)

    _ENGINES.add(engine)
    weakref.finalize(engine, _close_all, opened).atexit = False
    if forks:
        renew_after_fork(engine, leave)


def _close_all(opened: dict[Any, _Inode | None]) -> None:
    while opened:
        connection, inode = opened.popitem()
        with contextlib.suppress(Exception):  # a database in memory can only be closed by its thread
            connection.close()
        if inode is not None:
            _OPEN_FILES[inode] -= 1


@atexit.register
def _close_at_exit() -> None:
    """Close what no thread is using at this moment."""
    for engine in list(_ENGINES):
        engine.dispose()


def _inode(file: Path) -> _Inode:
    found = os.stat(file)
    return found.st_dev, found.st_ino
