"""Recurring jobs: their versions, production runs and audit."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables."""
    facts = sa.JSON(none_as_null=True)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("identity", sa.String(16), nullable=False),
        sa.Column("created_s", sa.Float(53), nullable=False),
        sa.Column("document", facts, nullable=False),
        sa.Column("settings", facts, nullable=False),
        sa.Column("studies", facts, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("current", sa.Integer, nullable=False),
        sa.Column("canary", facts),
        sa.Column("lease_s", sa.Float(53)),
        sa.Column("lease_clock", sa.String(40)),
    )
    op.create_table(
        "job_versions",
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("params", facts, nullable=False),
        sa.Column("at_s", sa.Float(53), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("facts", facts, nullable=False),
    )
    op.create_table(
        "job_runs",
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("ended_s", sa.Float(53), nullable=False),
        sa.Column("recorded_s", sa.Float(53), nullable=False),
        sa.Column("facts", facts, nullable=False),
    )
    op.create_index("job_runs_by_sequence", "job_runs", ["job_id", "sequence"])
    op.create_table(
        "job_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("at_s", sa.Float(53), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("facts", facts, nullable=False),
    )
