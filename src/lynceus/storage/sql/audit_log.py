"""What `audit.py` has written, read again."""

from __future__ import annotations

from sqlalchemy import select

from lynceus.storage.sql.audit import AuditEntry
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tables import audit


def audit_log(storage: Storage) -> list[AuditEntry]:
    """Every entry of a storage, oldest first."""
    with storage._errors(), storage._engine.connect() as connection:
        rows = connection.execute(select(audit).order_by(audit.c.id))
        return [AuditEntry(float(row.at_s), row.author, row.kind, row.subject, row.detail) for row in rows]
