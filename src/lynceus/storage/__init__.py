"""Durable records of studies: what was ordered, what happened, why a study ended."""
