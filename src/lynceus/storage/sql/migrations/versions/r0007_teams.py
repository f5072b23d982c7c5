"""Budgets that studies share, and who changed what."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns and make the tables."""
    for table in ("studies", "jobs"):
        for column in ("project", "owner"):
            op.add_column(table, sa.Column(column, sa.String(200)))
            op.create_index(f"ix_{table}_{column}", table, [column])
    op.create_table(
        "budgets",
        sa.Column("kind", sa.String(10), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("usd", sa.Float(53), nullable=False),
    )
    op.create_table(
        "past_charges",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project", sa.String(200)),
        sa.Column("owner", sa.String(200)),
        sa.Column("month_s", sa.Float(53), nullable=False, index=True),
        sa.Column("usd", sa.Float(53), nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at_s", sa.Float(53), nullable=False, index=True),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.JSON(none_as_null=True)),
    )
