"""Connections to the database of a storage, with what each kind of database needs."""

from __future__ import annotations

import os
import threading
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

_OPEN_FILES: Counter[tuple[int, int]] = Counter()
"""How many connections of this process each SQLite file has, by its device and inode."""


def is_open_here(file: Path) -> bool:
    """Whether this process has connections to a SQLite file. Then nothing but SQLite may open it: closing any other descriptor drops the
    locks of all of them, and another process that takes itself for the last one would delete the log into which they write."""
    return _OPEN_FILES[_inode(file)] > 0


def open_engine(address: Address, connections: int = 2) -> Engine:
    """An engine; `connections` are kept open to a PostgreSQL server."""
    json: dict[str, Any] = {"json_serializer": to_json_text, "json_deserializer": of_json_text}
    if not address.is_sqlite:
        given = {name: value for name, value in _CONNECTION.items() if name not in address.url.query}
        engine = create_engine(address.url, pool_pre_ping=True, pool_size=connections, connect_args=given, **json)
        renew_after_fork(engine, _leave_connections)
        return engine
    if address.file is None:
        engine = create_engine(address.url, **json)
        _refuse_other_threads(engine)
    else:
        engine = create_engine(address.url, connect_args={"timeout": BUSY_S}, **json)
        renew_after_fork(engine, _leave_connections)
        _count_connections(engine, Path(address.file))
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


def _count_connections(engine: Engine, file: Path) -> None:
    @event.listens_for(engine, "connect")
    def opened(connection: Any, record: Any) -> None:
        connection.execute("SELECT count(*) FROM sqlite_master").close()  # SQLite opens the file no earlier
        record.info["inode"] = _inode(file)
        _OPEN_FILES[record.info["inode"]] += 1

    @event.listens_for(engine, "close")
    def closed(connection: Any, record: Any) -> None:
        _OPEN_FILES[record.info.pop("inode", None)] -= 1


def _inode(file: Path) -> tuple[int, int]:
    found = os.stat(file)
    return found.st_dev, found.st_ino


def _leave_connections(engine: Engine) -> None:
    _OF_PARENTS.append(engine.pool)
    engine.dispose(close=False)
