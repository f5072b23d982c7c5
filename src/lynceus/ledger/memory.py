"""The ledger that lives as long as its process: for replays, notebooks and tests."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from lynceus.history import History, Observation, Order, Stopped
from lynceus.ledger.ledger import OpenRun, Wish

_FREE: AbstractContextManager[None] = nullcontext()


class MemoryLedger:
    """A ledger in memory, for one worker."""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(4)
        self._history: list[Observation] = []
        self._frozen: History | None = ()
        self._numbers: set[int] = set()
        self._open: dict[int, OpenRun] = {}
        self._announced: set[str] = set()
        self.queue: tuple[int, ...] = ()
        self.wish = Wish.RUN
        self.stopped: Stopped | None = None
        self.resumed_at = 0
        self.added_usd = 0.0
        self.active_s: float | None = None

    @property
    def history(self) -> History:
        """Settled runs in the order in which they settled."""
        if self._frozen is None:
            self._frozen = tuple(self._history)
        return self._frozen

    @property
    def pending(self) -> tuple[Order, ...]:
        """Ordered runs that have not settled."""
        return tuple(run.order for run in self._open.values())

    @property
    def open_runs(self) -> tuple[OpenRun, ...]:
        """The same with their tickets."""
        return tuple(self._open.values())

    @property
    def started(self) -> int:
        """How many runs were ordered or imported."""
        return len(self._history) + len(self._open)

    def refresh(self) -> None:
        """Nobody else writes here."""

    def exclusive(self) -> AbstractContextManager[None]:
        """There is one worker."""
        return _FREE

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """Write down that a run will be made."""
        self._open[order.number] = OpenRun(order)

    def launched(self, number: int, ticket: str) -> None:
        """Write down how to find it again."""
        self._open[number] = replace(self._open[number], ticket=ticket)

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """Nobody else waits for a sign of life."""

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """Write down how it ended."""
        number = observation.order.number
        if number in self._numbers:
            return False
        self._open.pop(number, None)
        self._numbers.add(number)
        self._history.append(observation)
        self._frozen = None
        return True

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Write down many past measurements at once."""
        for observation, point in zip(observations, params, strict=True):
            self.settled(observation, point)

    def closed(self, stopped: Stopped) -> None:
        """Write down that the study is over or paused."""
        self.stopped = stopped

    def resumed(self, add_usd: float = 0.0) -> None:
        """Write down that it goes on."""
        self.stopped, self.wish, self.resumed_at = None, Wish.RUN, len(self._history)
        self.added_usd += add_usd

    def wished(self, wish: Wish) -> None:
        """Write down what a person wants."""
        self.wish = wish

    def unwanted(self, number: int) -> None:
        """Write down that a person wants this one open run to end."""
        if number in self._open:
            self._open[number] = replace(self._open[number], unwanted=True)

    def enqueued(self, rows: Sequence[int]) -> None:
        """Write down the whole queue anew."""
        self.queue = tuple(rows)

    def announced(self, occasion: str) -> bool:
        """Write down that people are told of something, once."""
        new = occasion not in self._announced
        self._announced.add(occasion)
        return new

    def adopt(self) -> tuple[OpenRun, ...]:
        """Everything that is open is ours."""
        return self.open_runs

    def release(self) -> None:
        """Nobody else could look after them."""
