"""The ledger's interface, and the one that lives as long as its process."""

from __future__ import annotations

from typing import Protocol

from lynceus.history import History, Observation, Order


class Ledger(Protocol):
    """Append-only: orders, then their observations. Intention first, then the deed."""

    @property
    def history(self) -> History:
        """Settled runs in the order in which they settled."""

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that have not settled."""

    def ordered(self, order: Order) -> None:
        """Write down that a run will be made."""

    def settled(self, observation: Observation) -> None:
        """Write down how it ended."""


class MemoryLedger:
    """A ledger in memory: for replays, notebooks and tests."""

    def __init__(self) -> None:
        self._history: list[Observation] = []
        self._pending: dict[int, Order] = {}

    @property
    def history(self) -> History:
        """Settled runs in the order in which they settled."""
        return tuple(self._history)

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that have not settled."""
        return tuple(self._pending.values())

    def ordered(self, order: Order) -> None:
        """Write down that a run will be made."""
        self._pending[order.number] = order

    def settled(self, observation: Observation) -> None:
        """Write down how it ended."""
        self._pending.pop(observation.order.number, None)
        self._history.append(observation)
