"""Alembic runs this file to migrate; the connection comes from `lynceus.ledger.migrate`."""

from alembic import context

from lynceus.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
