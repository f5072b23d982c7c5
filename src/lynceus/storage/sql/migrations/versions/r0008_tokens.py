"""Named tokens with roles, and the browser sessions that began with one."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("created_s", sa.Float(53), nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("last_used_s", sa.Float(53)),
        sa.Column("expires_s", sa.Float(53)),
    )
    op.create_table(
        "token_sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("token_id", sa.Integer, sa.ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("expires_s", sa.Float(53), nullable=False),
    )
