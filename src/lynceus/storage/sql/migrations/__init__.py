"""Versioned changes of the storage's tables, run by Alembic."""
