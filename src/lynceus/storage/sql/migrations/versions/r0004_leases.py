"""Runs are leased to workers and fenced when another one takes them over; no document holds a password of its storage."""

import sqlalchemy as sa
from alembic import op

from lynceus.storage.sql.address import without_credentials

revision = "0004"
down_revision = "0003"

_studies = sa.table("studies", sa.column("id", sa.Integer), sa.column("document", sa.JSON))


def upgrade() -> None:
    """Add the columns; rewrite documents that hold a password."""
    op.add_column("trials", sa.Column("epoch", sa.Integer, nullable=False, server_default="0"))
    op.add_column("trials", sa.Column("lease_s", sa.Float(53)))
    op.add_column("trials", sa.Column("lease_clock", sa.String(40)))
    connection = op.get_bind()
    for study, document in connection.execute(sa.select(_studies)).all():
        if isinstance(document, dict) and (bare := without_credentials(document)) != document:
            connection.execute(sa.update(_studies).where(_studies.c.id == study).values(document=bare))
