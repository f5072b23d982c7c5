"""Why a study ends."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class StopReason(enum.StrEnum):
    """Why a search ends."""

    BUDGET = "budget"
    TRIALS = "trials"
    WALL_CLOCK = "wall clock"
    EXHAUSTED = "exhausted"
    CONVERGED = "converged"
    USER = "user"
    """The user ended it."""
    PAUSED = "paused"
    """Too many runs in a row failed: look at them before more money is spent."""
    SHARED_BUDGET = "shared budget"
    """The money of its project or its owner is used up for this month."""

    @property
    def pauses(self) -> bool:
        """Whether the search goes on by itself once somebody has resumed it: it has neither ended nor been stopped."""
        return self in (StopReason.PAUSED, StopReason.SHARED_BUDGET)


@dataclass(frozen=True, slots=True)
class Stopped:
    """No further run, and why. While runs are open, ask again when they have settled."""

    kind: StopReason
    reason: str
    """One clause for the user."""

    @property
    def study_state(self) -> str:
        """The state of a study that stopped for this reason: `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
        if self.kind.pauses:
            return "PAUSED"
        return "STOPPED" if self.kind is StopReason.USER else "FINISHED"
