"""The run loop: ask, launch, wait, settle. The same for live runs and for replayed tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.interface import Clock, Executor, LostRunError, Request
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.outcome import FailureReason, Observation, Outcome
from lynceus.trial.record import OpenRun, RequestedState

_FIRST_POLL_S = 0.005
_SLOWEST_POLL_S = 0.25
"""Seconds between two polls of an executor: few at first, then in proportion to the time that has passed."""
_PATIENCE_S = 60.0
"""How long an executor may fail to report on a run before the run counts as lost."""
BEAT_S = 5.0
"""Seconds between two heartbeats of a worker."""
_LOOK_S = 1.0
"""Seconds between two looks at what other processes request; cheaper than a heartbeat."""


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
) -> None:
    """Run trials, at most `parallel` at a time, until the study stops.

    Runs that a former worker left open come first. `requested_state` is called again and again: go on, start nothing more, or end open
    runs; other processes request the same through the journal. `tick` is called while the loop waits.
    """
    worker = _Worker(study, executor, clock, settled)
    try:
        worker.take_over()
        while True:
            wanted = worker.wanted(requested_state)
            while wanted is RequestedState.RUN and (slots := parallel - len(worker.running)) > 0:
                if (order := study.runs.order(slots)) is None:
                    break
                if ordered is not None:
                    ordered(order)
                worker.start(OpenRun(order))
                wanted = worker.wanted(requested_state)
            worker.end(everything=wanted is RequestedState.KILL)
            if not worker.running and (wanted is not RequestedState.RUN or not study.pending):
                return
            if tick is not None:
                tick()
            worker.wait()
    finally:
        worker.leave()


def request(study: Study, order: Order) -> Request:
    """An order as an executor needs it."""
    point = study.problem.space.point(order.row)
    return Request(study.name, order.number, order.row, point, order.timeout_s, order.boots, study.record.identity)


@dataclass
class _Worker:
    """The runs that one call of `explore` looks after."""

    study: Study
    executor: Executor
    clock: Clock
    settled: Callable[[Observation], None] | None

    def __post_init__(self) -> None:
        self.running: dict[str, OpenRun] = {}
        self._ended: set[str] = set()
        self._failing_since: dict[str, float] = {}
        self._beat_s = self._look_s = self._since_s = self.clock.now()

    def wanted(self, requested_state: Callable[[], RequestedState] | None) -> RequestedState:
        """The stronger of what our caller and other processes request; sends heartbeats, too."""
        now = self.clock.now()
        if now - self._beat_s >= BEAT_S or now < self._beat_s:
            self._beat_s = self._look_s = now
            self.study.runs.heartbeat([run.order.number for run in self.running.values()])
            if not self.running:
                self.take_over()
        elif now - self._look_s >= _LOOK_S:
            self._look_s = now
            self.study.runs.refresh()
        said = (RequestedState.RUN if requested_state is None else requested_state()), self.study.record.requested_state
        return max(said, key=list(RequestedState).index)

    def take_over(self) -> None:
        """Adopt runs that no worker looks after; start those that were only ordered."""
        for run in self.study.runs.adopt():
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
            self._settle(order, Outcome.failed(FailureReason.JOB, str(error)))
        except (InfrastructureError, OSError) as error:
            self._settle(order, Outcome.failed(FailureReason.INFRA, f"not started: {error}"))
        else:
            self.study.runs.launched(order.number, ticket)
            self.running[ticket] = run
            self._since_s = self.clock.now()

    def wait(self) -> None:
        """Settle runs that have ended; otherwise sleep for a moment."""
        finished = [(ticket, outcome) for ticket in self.running if (outcome := self._collect(ticket)) is not None]
        for ticket, outcome in finished:
            self._settle(self.running.pop(ticket).order, outcome)
        if not finished:
            passed = self.clock.now() - self._since_s
            self.clock.sleep(min(max(0.02 * passed, _FIRST_POLL_S), _SLOWEST_POLL_S))
            if not self.running:  # we wait for runs of other workers
                self.study.runs.refresh()

    def end(self, *, everything: bool) -> None:
        """End all open runs, or only those that the user cancelled; `wait` then settles them."""
        cancel_requested = {
            run.order.number for run in self.study.record.open_runs if run.cancel_requested or everything
        }
        for ticket, run in self.running.items():
            if run.order.number in cancel_requested and ticket not in self._ended:
                self._ended.add(ticket)
                self.executor.cancel(ticket)

    def leave(self) -> None:
        """Let other workers take over what we leave open."""
        if self.running:
            try:
                self.study.runs.release()
            except InfrastructureError:
                return  # the storage is gone; other workers will notice that we are

    def _collect(self, ticket: str) -> Outcome | None:
        """How a run ended, if it has. A run whose files make no sense is lost; other runs go on."""
        try:
            outcome = self.executor.collect(ticket)
        except (LostRunError, ValueError, LookupError, TypeError) as error:
            return _lost(self.study, self.running[ticket], f"lost: {error}")
        except OSError as error:  # too many open files, a network disk: perhaps only for a moment
            since = self._failing_since.setdefault(ticket, self.clock.now())
            patient = self.clock.now() - since < _PATIENCE_S
            return None if patient else _lost(self.study, self.running[ticket], f"lost: {error}")
        self._failing_since.pop(ticket, None)
        return outcome

    def _settle(self, order: Order, outcome: Outcome) -> None:
        observation = self.study.runs.settle(order, outcome)
        if self.settled is not None:
            self.settled(observation)


def _lost(study: Study, run: OpenRun, detail: str) -> Outcome:
    """A run of which only our record is left: it is charged up to its last heartbeat."""
    began, seen = run.launched_s, run.heartbeat_s
    seconds = 0.0 if began is None or seen is None else min(max(seen - began, 0.0), run.order.timeout_s)
    price = float(study.problem.price[run.order.row])
    charged = min(study.problem.billing.charge(seconds, price, boots=run.order.boots), run.order.reserved_usd)
    return Outcome.failed(FailureReason.INFRA, detail, seconds=seconds, charged_usd=charged)
