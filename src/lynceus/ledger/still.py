"""A ledger at one moment: for readers, of which many may look at once while others write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn

from lynceus.history import History, Observation, Order, Stopped
from lynceus.ledger.ledger import Ledger, OpenRun, Wish


@dataclass(frozen=True)
class StillLedger:
    """What a ledger said once. It never changes, and nothing can be written to it."""

    identity: str
    history: History
    open_runs: tuple[OpenRun, ...]
    queue: tuple[int, ...]
    wish: Wish
    stopped: Stopped | None
    resumed_at: int
    added_usd: float
    active_s: float | None

    @classmethod
    def of(cls, ledger: Ledger) -> StillLedger:
        """The present of a ledger."""
        return cls(
            ledger.identity,
            ledger.history,
            ledger.open_runs,
            ledger.queue,
            ledger.wish,
            ledger.stopped,
            ledger.resumed_at,
            ledger.added_usd,
            ledger.active_s,
        )

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that had not settled."""
        return tuple(run.order for run in self.open_runs)

    @property
    def started(self) -> int:
        """How many runs were ordered or imported."""
        return len(self.history) + len(self.open_runs)

    def refresh(self) -> None:
        """A moment stays what it was."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Nothing is written here."""
        self._refuse()

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """Nothing is written here."""
        self._refuse()

    def launched(self, number: int, ticket: str) -> None:
        """Nothing is written here."""
        self._refuse()

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """Nothing is written here."""
        self._refuse()

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """Nothing is written here."""
        self._refuse()

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Nothing is written here."""
        self._refuse()

    def closed(self, stopped: Stopped) -> None:
        """Nothing is written here."""
        self._refuse()

    def resumed(self, add_usd: float = 0.0) -> None:
        """Nothing is written here."""
        self._refuse()

    def wished(self, wish: Wish) -> None:
        """Nothing is written here."""
        self._refuse()

    def unwanted(self, number: int) -> None:
        """Nothing is written here."""
        self._refuse()

    def enqueued(self, rows: Sequence[int]) -> None:
        """Nothing is written here."""
        self._refuse()

    def announced(self, occasion: str) -> bool:
        """Nothing is written here."""
        self._refuse()

    def adopt(self) -> tuple[OpenRun, ...]:
        """Nothing is written here."""
        self._refuse()

    def release(self) -> None:
        """Nothing is written here."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError("this ledger is a moment of the past and cannot be written")
