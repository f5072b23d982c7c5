"""The interface of executors, and the clocks they run by."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from lynceus.errors import InfrastructureError
from lynceus.problem.objective import Constraint
from lynceus.trial.outcome import Outcome


class LostRunError(InfrastructureError):
    """The executor finds no trace of a run that it started. Nothing of the run is left running where the executor can see it."""

    def __init__(self, message: str, ran_s: float | None = None) -> None:
        super().__init__(message)
        self.ran_s = ran_s
        """Seconds that the run is known to have lasted; None if nothing is known."""


EndsWhen = Literal["never", "broken", "clear"]


@dataclass(frozen=True, slots=True)
class Request:
    """One run, as an executor sees it."""

    study: str
    number: int
    """The trial's number in its study. (study, identity, number) identifies a run."""
    row: int
    params: Mapping[str, object]
    timeout_s: float
    """The job is stopped after it has run for this many seconds."""
    boots: bool
    """Whether machines are started for this run."""
    identity: str = ""
    """Distinguishes studies of the same name."""
    limits: tuple[Constraint, ...] = ()
    """Limits on statistics of what the job streams."""
    ends_when: EndsWhen = "never"
    """Whether the run ends as soon as one of these limits is broken beyond doubt, or also once all are met beyond doubt."""


class Executor(Protocol):
    """Starts runs and reports how they ended. A ticket is a short text that identifies a run, also after a restart of Lynceus."""

    def launch(self, request: Request) -> str:
        """Start the run and return its ticket without waiting. A run of this study and number that exists is not started again.

        Temporary problems are not raised: `collect` retries. `InputError` means that this request can never run.
        """

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome of the run, every time it is called; None while the run is queued or running; `LostRunError` if no trace is left."""

    def cancel(self, ticket: str) -> None:
        """Stop the run now; `collect` then returns its outcome. Does nothing if the run has ended."""


@runtime_checkable
class SupportsClose(Protocol):
    """An executor that holds processes or connections. Closing it releases them; runs continue."""

    def close(self) -> None:
        """Release processes and connections."""


@dataclass(frozen=True, slots=True)
class Outage:
    """An executor cannot reach what runs its jobs: it can neither start, see nor stop a run until that answers again."""

    detail: str
    """One clause for the user: what was asked, and how it failed."""
    since_s: float
    """Since when, in seconds since the epoch."""


@runtime_checkable
class SupportsOutage(Protocol):
    """An executor that depends on a controller, which may hang, refuse, answer garbage or vanish.

    Its calls return within seconds all the same: `launch` returns the ticket, `collect` None, `cancel` at once; all are tried again.
    """

    def outage(self) -> Outage | None:
        """What is wrong now, as the last calls saw it; None if the controller answers. Never waits."""


class ResourceKind(enum.StrEnum):
    """What an owned resource is, as `lynceus gc` shows it."""

    PROCESSES = "processes"
    DIRECTORY = "directory"
    SCRATCH = "scratch directory"
    JOB = "job"
    CLUSTER = "cluster"
    ACTOR = "Ray actor"
    COPIED_FOLDER = "folder on Ray"


@dataclass(frozen=True, slots=True)
class OwnedResource:
    """Something that Lynceus created outside the storage: processes, a directory, a job in a queue, a cluster."""

    kind: ResourceKind
    name: str
    """What identifies it: a path, a job id, the name of a cluster."""
    study: str
    identity: str
    number: int | None
    """The trial that it belongs to; None if it belongs to the study as a whole, such as a cluster that is kept warm."""
    detail: str = ""
    """For display: its state, where it is."""


@runtime_checkable
class SupportsCleanup(Protocol):
    """An executor that can list and remove what it created, for `lynceus gc`."""

    def owned_resources(self) -> list[OwnedResource]:
        """Everything that Lynceus created and that still exists, of every study. The caller decides what is still needed."""

    def remove(self, resource: OwnedResource) -> None:
        """Stop or delete it. Does nothing if it no longer exists."""


class Clock(Protocol):
    """Time as an argument, so that hours of measured runs can be replayed in milliseconds."""

    def now(self) -> float:
        """Seconds since a fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class WallClock:
    """The system clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
