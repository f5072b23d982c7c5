"""A study that lives as long as its process: for replays, notebooks and tests."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from lynceus.storage.forks import renew_after_fork
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, Record, RequestedState
from lynceus.trial.shared_budget import SharedBudget
from lynceus.trial.stop import Stopped


class MemoryJournal:
    """A journal in memory, for one worker, which may use several threads."""

    def __init__(self, record: Record | None = None, now: Callable[[], float] = time.time) -> None:
        """`now` tells the moments at which trials start and end."""
        self._now = now
        self._record = Record(identity=secrets.token_hex(4)) if record is None else record
        self._observations = list(self._record.observations)
        self._open = {run.order.number: run for run in self._record.open_runs}
        self._settled = {seen.order.number for seen in self._observations}
        self._announced: set[str] = set()
        self._stale = False
        self.shared_budgets: Callable[[], tuple[SharedBudget, ...]] = tuple
        """Studies share budgets in a storage only."""
        self._make_locks()
        renew_after_fork(self, MemoryJournal._make_locks, lambda journal: journal._lock)

    def _make_locks(self) -> None:
        """A thread of the parent may have held the locks."""
        self._lock = threading.RLock()
        """The study's: held while a decision is made."""
        self._change = threading.RLock()
        """Held for moments, so that a reader need not wait for a decision."""

    @property
    def record(self) -> Record:
        """Everything written down so far."""
        with self._change:
            if self._stale:
                runs = tuple(self._open[number] for number in sorted(self._open))
                self._record = replace(self._record, observations=tuple(self._observations), open_runs=runs)
                self._stale = False
            return self._record

    def refresh(self) -> None:
        """No other process writes here."""

    def exclusive(self) -> AbstractContextManager[object]:
        """The study's lock: one thread at a time."""
        return self._lock

    def ordered(self, order: Order, params: Mapping[str, object]) -> None:
        """A run will be made."""
        self._change_run(OpenRun(order, ordered_s=self._now()))

    def launched(self, number: int, ticket: str) -> bool:
        """The run was started."""
        with self._lock:
            if (run := self._open.get(number)) is None:
                return False
            self._change_run(replace(run, ticket=ticket, launched_s=self._now()))
            return True

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """No other worker waits for a heartbeat."""

    def settled(self, observation: Observation, params: Mapping[str, object]) -> bool:
        """The run ended."""
        number = observation.order.number
        with self._lock, self._change:
            if number in self._settled:
                return False
            run = self._open.pop(number, None)
            self._settled.add(number)
            if run is not None:
                started_s = run.ordered_s if run.launched_s is None else run.launched_s
                observation = replace(observation, started_s=started_s, ended_s=self._now())
            self._observations.append(observation)
            self._stale = True
            return True

    def imported(self, observations: Sequence[Observation], params: Sequence[Mapping[str, object]]) -> None:
        """Past measurements, all at once."""
        with self._lock:
            for observation, point in zip(observations, params, strict=True):
                self.settled(observation, point)

    def closed(self, stopped: Stopped, requested: RequestedState | None = None) -> None:
        """The study is over or paused."""
        with self._lock, self._change:
            state = self.record.requested_state if requested is None else requested
            self._record = replace(self.record, stopped=stopped, requested_state=state)

    def resumed(self, add_usd: float = 0.0, limits: LimitChange | None = None, add_trials: int = 0) -> None:
        """The study goes on."""
        with self._lock, self._change:
            record = self.record
            self._record = replace(
                record,
                stopped=None,
                requested_state=RequestedState.RUN,
                resumed_at=len(record.observations),
                added_usd=record.added_usd + add_usd,
                added_trials=record.added_trials + add_trials,
                limit_changes=record.limit_changes if limits is None else (*record.limit_changes, limits),
            )

    def request_cancel(self, number: int) -> None:
        """The user wants this open run to end."""
        with self._lock:
            if number in self._open:
                self._change_run(replace(self._open[number], cancel_requested=True))

    def enqueued(self, rows: Sequence[int]) -> None:
        """The whole queue, replaced."""
        with self._lock, self._change:
            self._record = replace(self.record, queue=tuple(rows))

    def announced(self, event: str) -> bool:
        """The user is notified of an event, once."""
        with self._lock:
            new = event not in self._announced
            self._announced.add(event)
            return new

    def adopt(self) -> tuple[OpenRun, ...]:
        """All open runs are ours."""
        return self.record.open_runs

    def release(self) -> None:
        """There is no other worker."""

    def _change_run(self, run: OpenRun) -> None:
        with self._change:
            self._open[run.order.number] = run
            self._stale = True
