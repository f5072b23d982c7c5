"""The run loop: ask, launch, wait, settle. The same for live runs and for replayed tables.

It never waits for ever: an executor or a database server that does not answer is an outage, which the loop reports and outlasts. Nothing
is ordered in the meantime, and the user may leave at any moment: runs go on without us, and a later worker takes them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lynceus.errors import StorageOutageError
from lynceus.executors.bounded_calls import BoundedCalls
from lynceus.executors.interface import Clock, Executor, Outage, WallClock
from lynceus.study.study import Study
from lynceus.study.worker import Worker
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.trial.record import OpenRun, RequestedState

_PAUSE_S = 0.25
"""Seconds between two looks at the user's requests while the storage is away."""
_FIRST_RETRY_S, _SLOWEST_RETRY_S = 0.5, 5.0
"""Seconds until the storage is asked again: more with every failure."""


class StorageOutage(Outage):
    """The storage does not answer, rather than the executor."""


def explore(
    study: Study,
    executor: Executor,
    clock: Clock,
    *,
    parallel: int = 1,
    ordered: Callable[[Order], None] | None = None,
    settled: Callable[[Observation], None] | None = None,
    requested_state: Callable[[], RequestedState] | None = None,
    tick: Callable[[], None] | None = None,
    outage: Callable[[Outage | None], None] | None = None,
    leave: Callable[[], bool] | None = None,
) -> None:
    """Run trials, at most `parallel` at a time, until the study stops.

    Runs that a former worker left open come first. `requested_state` is called again and again: go on, start nothing more, or end open
    runs; other processes request the same through the journal. `tick` is called while the loop waits, `outage` when something stops
    answering, and with None when it answers again. When `leave` is true, the loop returns at once and leaves open runs to the next worker.
    """
    with _bounded(executor, clock) as calls:
        worker = Worker(study, calls, clock, settled)
        loop = _Loop(study, worker, clock, parallel, ordered, outage)
        try:
            while leave is None or not leave():
                if loop.step(requested_state):
                    return
                if tick is not None:
                    tick()
                loop.wait()
        finally:
            worker.leave()


@contextmanager
def _bounded(executor: Executor, clock: Clock) -> Iterator[Executor]:
    """An executor of real runs, called from a thread of its own. One of simulated runs answers at once."""
    if not isinstance(clock, WallClock):
        yield executor
        return
    calls = BoundedCalls(executor)
    try:
        yield calls
    finally:
        calls.close()


class _Loop:
    """One turn of the loop after the other, whether or not executor and storage answer."""

    def __init__(
        self,
        study: Study,
        worker: Worker,
        clock: Clock,
        parallel: int,
        ordered: Callable[[Order], None] | None,
        announce: Callable[[Outage | None], None] | None,
    ) -> None:
        self._study, self._worker, self._clock, self._parallel = study, worker, clock, parallel
        self._ordered, self._announce = ordered, announce
        self._announced_s: float | None = None
        """Since when what was announced last has been away; None: everything answers."""
        self._storage: StorageOutage | None = None
        """The storage does not answer."""
        self._retries, self._retry_at = 0, 0.0
        self._adopted = False
        """Whether open runs were taken over since the storage last failed."""

    def step(self, requested_state: Callable[[], RequestedState] | None) -> bool:
        """Do what can be done now; true when nothing is left to do."""
        if self._storage is not None and 0 <= self._retry_at - self._clock.now() <= _SLOWEST_RETRY_S:
            return False
        try:
            over = self._work(requested_state)
            self._storage, self._retries = None, 0
        except StorageOutageError as error:
            self._storage_failed(error)
            over = False
        self._report()
        return over

    def wait(self) -> None:
        """Settle what has ended, or let a moment pass."""
        if self._storage is not None:
            self._clock.sleep(_PAUSE_S)
            return
        try:
            self._worker.wait()
        except StorageOutageError as error:
            self._storage_failed(error)

    def _work(self, requested_state: Callable[[], RequestedState] | None) -> bool:
        worker, study = self._worker, self._study
        if not self._adopted:
            worker.take_over()
            self._adopted = True
        worker.start_again()
        wanted = worker.wanted(requested_state)
        while wanted is RequestedState.RUN and (slots := self._parallel - worker.busy) > 0 and self._may_order():
            if (order := study.runs.order(slots)) is None:
                break
            if self._ordered is not None:
                self._ordered(order)
            worker.start(OpenRun(order))
            wanted = worker.wanted(requested_state)
        worker.end(everything=wanted is RequestedState.KILL)
        return not worker.busy and (wanted is not RequestedState.RUN or not study.pending)

    def _may_order(self) -> bool:
        """During an outage one run at most is started, by which the loop notices when it is over."""
        return not self._worker.busy or self._worker.outage() is None

    def _storage_failed(self, error: StorageOutageError) -> None:
        now = self._clock.now()
        self._storage = StorageOutage(str(error), now if self._storage is None else self._storage.since_s)
        self._retry_at = now + min(_FIRST_RETRY_S * 2**self._retries, _SLOWEST_RETRY_S)
        self._retries = min(self._retries + 1, 10)
        # What was being written may have been kept or not: what is ours is read again.
        self._adopted = False

    def _report(self) -> None:
        found = self._storage or self._worker.outage()
        since_s = None if found is None else found.since_s
        if since_s != self._announced_s and self._announce is not None:
            self._announce(found)
        self._announced_s = since_s
