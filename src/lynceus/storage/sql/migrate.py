"""Bring a storage's tables to the version that this program reads; refuse those that it does not."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from lynceus.errors import InfrastructureError, InputError

HEAD = "0003"
"""The newest version of the tables, as in `migrations/versions`."""


def found_version(connection: Connection) -> str | None:
    """The version of the tables in a database; nothing when it holds no storage yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def ensure(engine: Engine, shown_url: str) -> None:
    """Make the tables in an empty database; refuse older and newer ones."""
    with engine.connect() as connection:
        version = found_version(connection)
    if version is None:
        upgrade(engine, shown_url)
    elif version > HEAD:
        raise InputError(_newer(shown_url, version))
    elif version < HEAD:
        raise InputError(
            f"storage {shown_url}: its tables have version {version}, this program needs {HEAD}; run: lynceus storage upgrade."
        )


def upgrade(engine: Engine, shown_url: str, to: str = "head") -> tuple[str | None, str]:
    """Migrate a database to this program's version; returns the versions before and after."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    steps = ScriptDirectory(str(Path(__file__).with_name("migrations")))
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            # Two processes may meet an empty database at the same moment; the second finds it made.
            connection.execute(text("SELECT pg_advisory_xact_lock(7621450339)"))
        before = found_version(connection)
        if before is not None and before > HEAD:
            raise InputError(_newer(shown_url, before))
        with EnvironmentContext(Config(), steps, fn=lambda found, _: steps._upgrade_revs(to, found)) as environment:
            environment.configure(connection=connection, render_as_batch=True)
            environment.run_migrations()
        after = found_version(connection)
    if after is None:
        raise InfrastructureError(f"storage {shown_url}: the tables could not be made.")
    return before, after


def _newer(shown_url: str, version: str) -> str:
    return (
        f"storage {shown_url}: its tables have version {version}, newer than this program's {HEAD}; "
        "use the version of Lynceus that wrote it, or a newer one."
    )
