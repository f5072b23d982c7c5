"""What every storage of a study promises: it reads as one frozen `Record`, and is written through a `Journal`.

Intention comes before action: a run is ordered, launched, kept alive by heartbeats, settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, Record, RequestedState
from lynceus.trial.shared_budget import SharedBudget
from lynceus.trial.stop import Stopped


class Records(Protocol):
    """Reading a study."""

    @property
    def record(self) -> Record:
        """Everything written down so far, as of the last read or write."""

    def refresh(self) -> None:
        """Read what other processes have written since."""


class Journal(Records, Protocol):
    """Writing a study. Decisions and writes happen inside `exclusive()`, one worker and one thread at a time.

    An open run is leased to one worker, which renews the lease by heartbeats. Another worker may take the run over when the lease has run
    out; from then on, what the first one writes about it does not count.
    """

    @property
    def shared_budgets(self) -> Callable[[], tuple[SharedBudget, ...]]:
        """Reads what is left of the budgets that the study shares with others. Inside `exclusive()` they are held until its end, so that no
        other study reserves the same money."""

    def exclusive(self) -> AbstractContextManager[object]:
        """The study's lock; what is written inside is kept as a whole or not at all. May be nested."""

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """A run will be made."""

    def launched(self, number: int, ticket: str) -> bool:
        """The run was started; the ticket finds it again. False, and nothing changes, when another worker looks after it."""

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """A worker still looks after these runs, but for those that others took over. Reads new requests, too."""

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """The run ended; False, and nothing changes, when that is known already, or another worker looks after it."""

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Past measurements, all at once; their numbers follow those of the study."""

    def closed(self, stopped: Stopped, requested: RequestedState | None = None) -> None:
        """The study is over or paused; `requested` says what workers should do with open runs."""

    def resumed(self, add_usd: float = 0.0, limits: LimitChange | None = None, add_trials: int = 0) -> None:
        """The study goes on, perhaps with more money or trials, or under other constraints."""

    def request_cancel(self, number: int) -> None:
        """The user wants this open run to end."""

    def enqueued(self, rows: Sequence[int]) -> None:
        """The whole queue, replaced."""

    def announced(self, event: str) -> bool:
        """The user is notified of an event; False, and nothing changes, when that happened already."""

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over open runs that no worker looks after; returns them with those that are ours already."""

    def release(self) -> None:
        """Give up our open runs, so that another worker may take them over."""
