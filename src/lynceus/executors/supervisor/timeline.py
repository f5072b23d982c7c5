"""What the supervisor of a run and its guard know about its time, in memory that both of them see."""

from __future__ import annotations

import mmap

_FIELDS = ("began", "job", "stopped", "stopped_by_guard", "ended", "gone", "beat")


class Timeline:
    """Moments by the monotonic clock, in seconds; 0 means not yet. Made before the fork, it is shared by both processes."""

    began: float
    """When the job was started."""
    job: float
    """The number of its process."""
    stopped: float
    """When the job was told to stop."""
    stopped_by_guard: float
    """Whether the guard told it, because the supervisor had not."""
    ended: float
    """When the job's own process ended."""
    gone: float
    """When all of its processes were gone."""
    beat: float
    """When the supervisor last did something."""

    def __init__(self) -> None:
        # Numbers of a view are read and written as a whole; `struct` clears them first, which the other process may see.
        object.__setattr__(self, "_numbers", memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d"))

    def __getattr__(self, name: str) -> float:
        if name not in _FIELDS:
            raise AttributeError(name)
        found: float = self.__dict__["_numbers"][_FIELDS.index(name)]
        return found

    def __setattr__(self, name: str, value: float) -> None:
        self.__dict__["_numbers"][_FIELDS.index(name)] = value
