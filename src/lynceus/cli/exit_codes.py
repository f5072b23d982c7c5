"""Exit codes of commands, besides 0 for success."""

INPUT = 2
"""A mistake in an argument or a file."""
INFEASIBLE = 3
"""No configuration is known to meet every constraint, or none with the confidence that it demands."""
INFRASTRUCTURE = 4
"""A machine, an executor or a database failed; or so many trials failed that the study paused."""
SHARED_BUDGET = 5
"""The study paused, because the money of its project or its owner is used up for this month."""
INTERRUPTED = 130
"""Ctrl-C or SIGTERM."""
