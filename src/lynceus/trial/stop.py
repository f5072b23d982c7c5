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


@dataclass(frozen=True, slots=True)
class Stopped:
    """No further run, and why. While runs are open, ask again when they have settled."""

    kind: StopReason
    reason: str
    """One clause for the user."""

    @property
    def study_state(self) -> str:
        """The state of a study that stopped for this reason: `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
        return {StopReason.PAUSED: "PAUSED", StopReason.USER: "STOPPED"}.get(self.kind, "FINISHED")
