"""Recurring jobs in production: adopt, serve, run, record, watch and change them. Nothing here prints."""
