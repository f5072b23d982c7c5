"""Keep the queue of configurations that the user wants next, and find changed trials without reading all."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column("studies", sa.Column("queue", sa.JSON, nullable=False, server_default="[]"))
    op.create_index("trials_by_sequence", "trials", ["study_id", "sequence"])
