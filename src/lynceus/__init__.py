"""Lynceus finds the cheapest configuration of a recurring cloud job that is still on time."""
