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
        """Start the run and return its ticket at once; a run of this study and number that exists already is not started again.

        Trouble that may pass is not raised: `collect` tries again. `InputError` means that this request can never run.
        """

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended, as often as asked; nothing while it is queued or running; `LostRunError` when nothing is left of it."""

    def cancel(self, ticket: str) -> None:
        """End the run now; `collect` then tells how it ended. Harmless when it has ended already."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """One thing of ours that exists outside the storage: processes, a directory, a job in a queue, a machine."""

    kind: str
    """`processes`, `directory`, `job`, `cluster` and so on, for people."""
    name: str
    """What finds it again: a path, the number of a job, the name of a cluster."""
    study: str
    identity: str
    number: int | None
    """The trial that it belongs to; nothing: the study as a whole, such as a machine that is kept warm."""
    detail: str = ""
    """For people: its state, where it is."""


class Sweeps(Protocol):
    """What an executor can do besides, so that nothing is left running: list everything of ours, and end it one by one."""

    def belongings(self) -> list[Belonging]:
        """Everything of ours that is alive or kept, of every study; whether it is still needed is for others to judge."""

    def end(self, belonging: Belonging) -> None:
        """End or remove it; nothing happens when it is gone already."""


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
