"""A study: ask for a trial, tell how it went; and the loop that does both with an executor."""
