"""Let the user end one trial, and keep answers by idempotency key, so that a repeated request is done once."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column and the table."""
    op.add_column("trials", sa.Column("unwanted", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "answers",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("answer", sa.JSON, nullable=False),
        sa.Column("at_s", sa.Float(53), nullable=False),
    )
