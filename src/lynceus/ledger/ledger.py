"""What every ledger promises. Intention before deed: ordered, launched, heartbeat, settled."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from lynceus.history import History, Observation, Order, Stopped


class Wish(enum.StrEnum):
    """What a person wants of the workers of a study."""

    RUN = "run"
    STOP = "stop"
    """Order nothing more; let what runs come to its end."""
    KILL = "kill"
    """Order nothing more; end what runs."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that was ordered and has not settled."""

    order: Order
    ticket: str | None = None
    """How the executor finds the run again; nothing before it was launched."""
    worker: str | None = None
    """Who looks after it; nothing when nobody does."""
    ordered_s: float = 0.0
    """When it was ordered, seconds since the epoch."""
    launched_s: float | None = None
    heartbeat_s: float | None = None
    """When it was last seen to run."""
    unwanted: bool = False
    """A person wants this run to end; whoever runs it ends it and settles it."""


class Ledger(Protocol):
    """The facts of one study. Whoever decides or writes does it inside `exclusive()`, one worker at a time."""

    @property
    def identity(self) -> str:
        """A few letters that tell this study apart from every other one, also of the same name."""

    @property
    def history(self) -> History:
        """Settled runs in the order in which they settled."""

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that have not settled, in the order of their numbers."""

    @property
    def open_runs(self) -> tuple[OpenRun, ...]:
        """The same with ticket, worker and times."""

    @property
    def started(self) -> int:
        """How many runs were ordered or imported: settled ones and open ones. The next run takes it for its number."""

    @property
    def queue(self) -> tuple[int, ...]:
        """Rows that a person wants to be run next."""

    @property
    def wish(self) -> Wish:
        """What a person wants of the workers."""

    @property
    def stopped(self) -> Stopped | None:
        """Why the study is over or paused; nothing while it goes on."""

    @property
    def resumed_at(self) -> int:
        """How many runs had settled when the study was last resumed; failures before do not count towards a pause."""

    @property
    def added_usd(self) -> float:
        """Money that was added to the budget after the study began."""

    @property
    def active_s(self) -> float | None:
        """Seconds in which somebody worked on the study, pauses left out; nothing: the study's own clock tells."""

    def refresh(self) -> None:
        """Read what others have written since."""

    def exclusive(self) -> AbstractContextManager[None]:
        """One worker at a time; what is written inside is kept as a whole or not at all. May be nested."""

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """Write down that a run will be made."""

    def launched(self, number: int, ticket: str) -> None:
        """Write down how to find it again."""

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """Write down that these runs are still looked after, and notice new wishes."""

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """Write down how it ended; false, and nothing changes, when that had been written already."""

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Write down many past measurements at once; their numbers follow on those of the study."""

    def closed(self, stopped: Stopped) -> None:
        """Write down that the study is over or paused."""

    def resumed(self, add_usd: float = 0.0) -> None:
        """Write down that it goes on, perhaps with more money."""

    def wished(self, wish: Wish) -> None:
        """Write down what a person wants of the workers."""

    def unwanted(self, number: int) -> None:
        """Write down that a person wants this one open run to end."""

    def enqueued(self, rows: Sequence[int]) -> None:
        """Write down the whole queue anew."""

    def announced(self, occasion: str) -> bool:
        """Write down that people are told of something; false, and nothing changes, when that had been written already."""

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over the open runs that nobody looks after; they are returned with those that are mine already."""

    def release(self) -> None:
        """Let go of my open runs, so that somebody else may look after them."""
