"""What every executor promises, and the clock that it lives by."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lynceus.errors import InfrastructureError
from lynceus.history import Outcome


class LostRunError(InfrastructureError):
    """The executor finds nothing of a run that it once started."""


@dataclass(frozen=True, slots=True)
class Request:
    """One run, in terms that an executor understands."""

    study: str
    number: int
    """The trial's number in its study; (study, identity, number) never names two runs."""
    row: int
    params: Mapping[str, object]
    cap_s: float
    """The job is stopped after this many seconds of its own, where it runs."""
    boots: bool
    """Whether machines are started for it."""
    identity: str = ""
    """Tells studies of one name apart."""


class Executor(Protocol):
    """Starts runs and says how they ended. A ticket is a short text that finds the run again after a restart."""

    def launch(self, request: Request) -> str:
        """Start the run and return its ticket at once; a run of this study and number that exists already is not started again."""

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended, as often as asked; nothing while it is running; `LostRunError` when nothing is left of it."""

    def cancel(self, ticket: str) -> None:
        """End the run now; `collect` then tells how it ended."""


class Clock(Protocol):
    """Time as an argument, so that a measured job of an hour can be replayed in a moment."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class WallClock:
    """The time on the wall."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
