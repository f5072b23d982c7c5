"""The state of a run on a Ray cluster, as the driver reports it to Lynceus."""

import enum


class RunState(enum.StrEnum):
    """Where a run is."""

    ABSENT = "absent"
    """Not on the cluster and never started: launch it."""
    QUEUED = "queued"
    RUNNING = "running"
    LOST = "lost"
    """It was started, but its actor is gone and there is no outcome."""
    ENDED = "ended"
