"""The constraints and the number of trials of a study may change while it goes on."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("studies", sa.Column("limits", sa.JSON(none_as_null=True)))
    op.add_column("studies", sa.Column("added_trials", sa.Integer, nullable=False, server_default="0"))
