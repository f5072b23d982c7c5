"""Notifications when a study ends, pauses, or has spent 80 % of its budget: by webhook, mail or apprise. Each is sent once."""
