"""One transaction that writes, and whose end is known even when the connection is lost while it commits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from lynceus.errors import InfrastructureError, StorageOutageError
from lynceus.storage.sql.address import Address

_FIND_OUT_S = 10.0
"""How long to ask a server whether a transaction was committed, after the connection broke."""
_RETRY_S = 0.2
_WHO = text("SELECT pg_backend_pid() AS pid, txid_current() AS id")
_STATUS = text("SELECT txid_status(:id)")
_END = text("SELECT pg_terminate_backend(:pid)")


@dataclass(frozen=True, slots=True)
class _Transaction:
    """How a PostgreSQL server knows a transaction."""

    pid: int
    id: int


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection with one transaction: all that is written inside is kept, or nothing."""
    with engine.connect().execution_options(writing=True) as connection:
        transaction = connection.begin()
        try:
            known = _known(connection)
            yield connection
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            if known is None or not error.connection_invalidated or not _was_committed(engine, known):
                raise


def _known(connection: Connection) -> _Transaction | None:
    if connection.dialect.name != "postgresql":
        return None  # SQLite commits in this process: an error means that nothing was written
    row = connection.execute(_WHO).one()
    return _Transaction(row.pid, row.id)


def _was_committed(engine: Engine, transaction: _Transaction) -> bool:
    """Ask the server on a new connection. What has not been committed never will be: the broken session is ended."""
    until = time.monotonic() + _FIND_OUT_S
    while time.monotonic() < until:
        try:
            with engine.connect() as connection:
                status = connection.execute(_STATUS, {"id": transaction.id}).scalar()
                if status != "in progress":
                    return bool(status == "committed")
                connection.execute(_END, {"pid": transaction.pid})
        except DBAPIError:
            pass  # the server restarts, or the network is away
        time.sleep(_RETRY_S)
    return False


@contextmanager
def database_errors(address: Address, advice: str) -> Iterator[None]:
    """Turn what a database or its driver says into one sentence without passwords, which ends with advice."""
    try:
        yield
    except SQLAlchemyError as error:
        said = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split()) or type(error).__name__
        away = not address.is_sqlite and isinstance(error, InterfaceError | OperationalError)
        kind = StorageOutageError if away else InfrastructureError
        raise kind(f"storage {address.shown}: {address.scrub(said)}; {advice}.") from error
