"""The loop: ask, launch, wait, settle. The same for live runs and for replayed tables; everything clever is in the parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.executor.executor import Clock, Executor, LostRunError, Request
from lynceus.history import End, Observation, Order, Outcome, Reason
from lynceus.ledger import OpenRun, Wish
from lynceus.study import Study

_FIRST_POLL_S = 0.005
_SLOWEST_POLL_S = 0.25
"""How often a live executor is asked whether a run has ended: often at first, then in proportion to what has passed."""
_PATIENCE_S = 60.0
"""How long an executor may be unable to tell anything about a run before it counts as lost."""
BEAT_S = 5.0
"""Seconds between two signs of life of a worker."""
_LOOK_S = 1.0
"""Seconds between two looks at what other processes want; cheaper than a sign of life."""


def explore(
    study: Study,
    executor: Executor,
    clock: Clock,
    *,
    parallel: int = 1,
    ordered: Callable[[Order], None] | None = None,
    settled: Callable[[Observation], None] | None = None,
    wish: Callable[[], Wish] | None = None,
    tick: Callable[[], None] | None = None,
) -> None:
    """Run trials, at most `parallel` at a time, until the study stops.

    First come the runs that a worker before us left open. `wish` is asked again and again what to do: go on, order nothing more, or
    end what runs; so are other processes, through the ledger. `tick` is called while we wait.
    """
    worker = _Worker(study, executor, clock, settled)
    try:
        worker.take_over()
        while True:
            wanted = worker.wanted(wish)
            while wanted is Wish.RUN and (slots := parallel - len(worker.running)) > 0:
                if (order := study.order(slots)) is None:
                    break
                if ordered is not None:
                    ordered(order)
                worker.start(OpenRun(order))
                wanted = worker.wanted(wish)
            worker.end(everything=wanted is Wish.KILL)
            if not worker.running and (wanted is not Wish.RUN or not study.pending):
                return
            if tick is not None:
                tick()
            worker.wait()
    finally:
        worker.leave()


def request(study: Study, order: Order) -> Request:
    """What an executor needs to know of an order."""
    point = study.problem.space.point(order.row)
    return Request(study.name, order.number, order.row, point, order.cap_s, order.boots, study.identity)


@dataclass
class _Worker:
    """What one call of `explore` looks after."""

    study: Study
    executor: Executor
    clock: Clock
    settled: Callable[[Observation], None] | None

    def __post_init__(self) -> None:
        self.running: dict[str, OpenRun] = {}
        self._ended: set[str] = set()
        self._odd_since: dict[str, float] = {}
        self._beat_s = self._look_s = self._since_s = self.clock.now()

    def wanted(self, wish: Callable[[], Wish] | None) -> Wish:
        """The strongest of what our caller and other processes want; a heartbeat now and then."""
        now = self.clock.now()
        if now - self._beat_s >= BEAT_S or now < self._beat_s:
            self._beat_s = self._look_s = now
            self.study.heartbeat([run.order.number for run in self.running.values()])
            if not self.running:
                self.take_over()
        elif now - self._look_s >= _LOOK_S:
            self._look_s = now
            self.study.refresh()
        said = (Wish.RUN if wish is None else wish()), self.study.wish
        return max(said, key=list(Wish).index)

    def take_over(self) -> None:
        """Look after the runs that nobody looks after: adopt what still runs, start what was only ordered."""
        for run in self.study.adopt():
            if run.ticket is None:
                self.start(run)
            else:
                self.running[run.ticket] = run

    def start(self, run: OpenRun) -> None:
        """Launch, then write the ticket down. A crash between the two is harmless: the same launch finds the same run."""
        order = run.order
        try:
            ticket = self.executor.launch(request(self.study, order))
        except InputError as error:
            self._settle(order, Outcome(End.FAILED, 0.0, 0.0, reason=Reason.JOB, detail=str(error)))
        except (InfrastructureError, OSError) as error:
            self._settle(order, Outcome(End.FAILED, 0.0, 0.0, reason=Reason.INFRA, detail=f"not started: {error}"))
        else:
            self.study.launched(order.number, ticket)
            self.running[ticket] = run
            self._since_s = self.clock.now()

    def wait(self) -> None:
        """Settle what has ended; otherwise let a moment pass."""
        finished = [(ticket, outcome) for ticket in self.running if (outcome := self._collect(ticket)) is not None]
        for ticket, outcome in finished:
            self._settle(self.running.pop(ticket).order, outcome)
        if not finished:
            passed = self.clock.now() - self._since_s
            self.clock.sleep(min(max(0.02 * passed, _FIRST_POLL_S), _SLOWEST_POLL_S))
            if not self.running:  # others' runs are what we wait for
                self.study.refresh()

    def end(self, *, everything: bool) -> None:
        """End all that runs, or only what a person wants to end; `wait` then settles it."""
        unwanted = {run.order.number for run in self.study.open_runs if run.unwanted or everything}
        for ticket, run in self.running.items():
            if run.order.number in unwanted and ticket not in self._ended:
                self._ended.add(ticket)
                self.executor.cancel(ticket)

    def leave(self) -> None:
        """Whoever comes next may look after what we leave open."""
        if self.running:
            try:
                self.study.release()
            except InfrastructureError:
                return  # the storage is gone; our death will be noticed without it

    def _collect(self, ticket: str) -> Outcome | None:
        """How a run ended, if it has. A run of which only nonsense is left is lost; it stops nobody but itself."""
        try:
            outcome = self.executor.collect(ticket)
        except (LostRunError, ValueError, LookupError, TypeError) as error:
            return _lost(self.study, self.running[ticket], f"lost: {error}")
        except OSError as error:  # too many open files, a network disk: perhaps only for a moment
            since = self._odd_since.setdefault(ticket, self.clock.now())
            patient = self.clock.now() - since < _PATIENCE_S
            return None if patient else _lost(self.study, self.running[ticket], f"lost: {error}")
        self._odd_since.pop(ticket, None)
        return outcome

    def _settle(self, order: Order, outcome: Outcome) -> None:
        observation = self.study.settle(order, outcome)
        if self.settled is not None:
            self.settled(observation)


def _lost(study: Study, run: OpenRun, detail: str) -> Outcome:
    """A run of which nothing is left but our own notes: it is charged up to its last sign of life."""
    began, seen = run.launched_s, run.heartbeat_s
    seconds = 0.0 if began is None or seen is None else min(max(seen - began, 0.0), run.order.cap_s)
    price = float(study.problem.price[run.order.row])
    charged = min(study.problem.tariff.charge(seconds, price, boots=run.order.boots), run.order.reserved_usd)
    return Outcome(End.FAILED, seconds, charged, reason=Reason.INFRA, detail=detail)
