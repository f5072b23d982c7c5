"""Who created, renamed and deleted studies and changed budgets and tokens. Entries are written with the change itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert

from lynceus.storage.serialization import storable
from lynceus.storage.sql.tables import audit


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change."""

    at_s: float
    """Seconds since the epoch."""
    author: str
    """The user of a command, or the token and the address of a client; empty when it is not known."""
    kind: str
    """`create`, `rename`, `delete`, `budget` or `token`."""
    subject: str
    """The study that was changed, the account (`project:NAME`, `owner:NAME`), or the name of the token."""
    detail: Mapping[str, Any] | None = None


def note_change(connection: Connection, entry: AuditEntry) -> None:
    """Write an entry in the transaction that makes the change."""
    connection.execute(
        insert(audit).values(
            at_s=entry.at_s,
            author=storable(entry.author),
            kind=entry.kind,
            subject=storable(entry.subject),
            detail=None if entry.detail is None else storable(dict(entry.detail)),
        )
    )
