"""Why a supervisor stops a job."""

from __future__ import annotations

import enum


class StopCause(enum.Enum):
    """Why the supervisor stopped the job."""

    TIMEOUT = enum.auto()
    CANCEL = enum.auto()
    SIGNAL = enum.auto()
    """The supervisor itself received a signal, from a scheduler for example."""
    NO_DIRECTORY = enum.auto()
    """The run directory was removed or replaced: nobody can see the run any more."""
    HOPELESS = enum.auto()
    """Its learning curve says that it will not reach its target."""
    NO_GUARD = enum.auto()
    """The guard was killed: the timeout would no longer hold for certain."""
    BROKEN = enum.auto()
    """A limit on what the job streams is broken beyond doubt."""
    MET = enum.auto()
    """Every limit is met beyond doubt, and nothing else is to be measured."""
