"""Studies in SQLite or PostgreSQL."""
