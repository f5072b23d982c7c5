"""Recurring jobs in production: their record, what the next run is expected to take, and what to do. Pure: no storage, no clock."""
