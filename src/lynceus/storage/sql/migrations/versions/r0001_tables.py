"""The first tables: studies, trials, the journal, settings."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "settings",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("identity", sa.String(16), nullable=False),
        sa.Column("created_s", sa.Float(53), nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("policy", sa.JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("settled", sa.Integer, nullable=False),
        sa.Column("wish", sa.String(10), nullable=False),
        sa.Column("because", sa.String(20)),
        sa.Column("reason", sa.Text),
        sa.Column("resumed_at", sa.Integer, nullable=False),
        sa.Column("added_usd", sa.Float(53), nullable=False),
        sa.Column("active_s", sa.Float(53), nullable=False),
        sa.Column("seen_s", sa.Float(53), nullable=False),
    )
    op.create_table(
        "trials",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("rank", sa.Integer),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("ordered", sa.JSON, nullable=False),
        sa.Column("outcome", sa.JSON),
        sa.Column("told", sa.JSON),
        sa.Column("ticket", sa.Text),
        sa.Column("worker", sa.Text),
        sa.Column("ordered_s", sa.Float(53), nullable=False),
        sa.Column("launched_s", sa.Float(53)),
        sa.Column("heartbeat_s", sa.Float(53)),
        sa.Column("settled_s", sa.Float(53)),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("at_s", sa.Float(53), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("worker", sa.Text),
        sa.Column("detail", sa.JSON),
    )
