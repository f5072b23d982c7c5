"""A worker: it looks after the open runs of a study, from the launch until they settle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.bounded_calls import NotAnsweringError
from lynceus.executors.interface import Clock, EndsWhen, Executor, LostRunError, Outage, Request, SupportsOutage
from lynceus.problem.objective import streamed
from lynceus.problem.units import format_duration
from lynceus.study.runs import TakenOverError
from lynceus.study.study import Study
from lynceus.trial.order import Order, Purpose
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
_SHORTEST_S = 1.0
"""A run that was launched, and of which nothing is known since, is charged for so many seconds."""


def request(study: Study, order: Order) -> Request:
    """An order as an executor needs it."""
    problem = study.problem
    point, identity = problem.space.point(order.row), study.record.identity
    limits = tuple(one for one in problem.constraints if streamed(one.metric) is not None)
    # With a known objective and no other limit, a run has nothing to tell once its limits are decided. A baseline is measured to its end.
    alone = problem.goal.known is not None and len(limits) == len(problem.constraints)
    ends_when: EndsWhen = "never" if order.plan.purpose is Purpose.BASELINE else "clear" if alone else "broken"
    return Request(
        study.name, order.number, order.row, point, order.timeout_s, order.boots, identity, limits, ends_when
    )


@dataclass
class _Watched:
    """A run that we look after."""

    run: OpenRun
    since_s: float
    """Since when, by our clock."""
    before_s: float
    """How long it had run by then, by the journal's clock."""
    seen_s: float
    """When the executor last knew of it, by our clock."""
    failing_since_s: float | None = None
    """Since when the executor cannot read its files, by our clock."""

    @property
    def number(self) -> int:
        return self.run.order.number


class Worker:
    """The runs that one call of `explore` looks after."""

    def __init__(
        self, study: Study, executor: Executor, clock: Clock, settled: Callable[[Observation], None] | None = None
    ) -> None:
        self._study, self._executor, self._clock, self._settled = study, executor, clock, settled
        self._ask_outage = executor.outage if isinstance(executor, SupportsOutage) else None
        self._running: dict[str, _Watched] = {}
        self._starting: dict[int, OpenRun] = {}
        """Runs whose launch the executor has not answered yet, by their numbers."""
        self._ended: set[str] = set()
        self._failure: Outage | None = None
        """What the executor raised instead of an answer."""
        self._beat_s = self._look_s = self._asked_s = self._since_s = clock.now()

    @property
    def busy(self) -> int:
        """Runs that we look after."""
        return len(self._running) + len(self._starting)

    def outage(self) -> Outage | None:
        """What keeps the executor from answering; None if it answers."""
        found = None if self._ask_outage is None else self._ask_outage()
        return found or self._failure

    def wanted(self, requested_state: Callable[[], RequestedState] | None) -> RequestedState:
        """The stronger of what our caller and other processes request; sends heartbeats, too."""
        now = self._clock.now()
        if now - self._beat_s >= BEAT_S or now < self._beat_s:
            self._beat_s = self._look_s = now
            self._study.runs.heartbeat([*(one.number for one in self._running.values()), *self._starting])
            self._drop_taken_over()
            if not self.busy:
                self.take_over()
        elif now - self._look_s >= _LOOK_S:
            self._look_s = now
            self._study.runs.refresh()
            self._drop_taken_over()
        said = (
            RequestedState.RUN if requested_state is None else requested_state(),
            self._study.record.requested_state,
        )
        return max(said, key=list(RequestedState).index)

    def take_over(self) -> None:
        """Adopt runs that no worker looks after; start those that were only ordered."""
        for run in self._study.runs.adopt():
            if run.ticket is None:
                self.start(run)
            elif run.ticket not in self._running:
                self._watch(run.ticket, run)

    def start_again(self) -> None:
        """Ask again, every second, for launches that were not answered."""
        if self._starting and abs(self._clock.now() - self._asked_s) >= _LOOK_S:
            self._asked_s = self._clock.now()
            for run in list(self._starting.values()):
                self.start(run)

    def start(self, run: OpenRun) -> None:
        """Launch, then write the ticket down. A crash between the two is harmless: the same launch finds the same run."""
        order = run.order
        if not self._study.runs.confirm(order.number):  # another worker took us for dead
            self._starting.pop(order.number, None)
            return
        self._starting[order.number] = run
        try:
            ticket = self._executor.launch(request(self._study, order))
        except NotAnsweringError:
            return
        except InputError as error:
            self._settle(order, Outcome.failed(FailureReason.JOB, str(error)))
        except (InfrastructureError, OSError) as error:
            self._settle(order, Outcome.failed(FailureReason.INFRA, f"not started: {error}"))
        else:
            if self._study.runs.launched(order.number, ticket):
                self._watch(ticket, run)
                self._since_s = self._clock.now()
            self._starting.pop(order.number, None)

    def wait(self) -> None:
        """Settle runs that have ended; otherwise sleep for a moment."""
        finished = [(ticket, outcome) for ticket in self._running if (outcome := self._collect(ticket)) is not None]
        for ticket, outcome in finished:
            self._settle(self._running[ticket].run.order, outcome)
            self._failure = None
        if not finished:
            passed = self._clock.now() - self._since_s
            self._clock.sleep(min(max(0.02 * passed, _FIRST_POLL_S), _SLOWEST_POLL_S))
            if not self._running:  # we wait for runs of other workers
                self._study.runs.refresh()

    def end(self, *, everything: bool) -> None:
        """End all open runs, or only those that the user cancelled; `wait` then settles them."""
        unwanted = {run.order.number for run in self._study.record.open_runs if run.cancel_requested or everything}
        for ticket, watched in self._running.items():
            if watched.number in unwanted and ticket not in self._ended:
                try:
                    self._executor.cancel(ticket)
                except NotAnsweringError:
                    continue
                except (InfrastructureError, OSError) as error:
                    self._failed(error)
                    continue
                self._failure = None
                self._ended.add(ticket)

    def leave(self) -> None:
        """Let other workers take over what we leave open."""
        if self.busy:
            with contextlib.suppress(InfrastructureError):  # the storage is gone; other workers will notice that we are
                self._study.runs.release()

    def _watch(self, ticket: str, run: OpenRun) -> None:
        now, began, seen = self._clock.now(), run.launched_s, run.heartbeat_s
        before_s = 0.0 if began is None or seen is None else max(seen - began, 0.0)
        self._running[ticket] = _Watched(run, now, before_s, now)

    def _drop_taken_over(self) -> None:
        """Forget runs that another worker looks after, or has settled: they are neither settled nor ended here."""
        holds = self._study.runs.holds
        self._running = {ticket: one for ticket, one in self._running.items() if holds(one.number)}
        self._starting = {number: run for number, run in self._starting.items() if holds(number)}

    def _collect(self, ticket: str) -> Outcome | None:
        """How a run ended, if it has. A run whose files make no sense is lost; other runs go on."""
        watched, now = self._running[ticket], self._clock.now()
        try:
            outcome = self._executor.collect(ticket)
        except NotAnsweringError:
            return None
        except (LostRunError, ValueError, LookupError, TypeError) as error:
            return self._lost(ticket, error)
        except InfrastructureError:
            raise  # the executor has waited as long as its `patience` says: the study stops and keeps its open trials
        except OSError as error:  # too many open files, a network disk: perhaps only for a moment
            watched.failing_since_s = now if watched.failing_since_s is None else watched.failing_since_s
            return None if now - watched.failing_since_s < _PATIENCE_S else self._lost(ticket, error)
        watched.failing_since_s = None
        if outcome is None:
            watched.seen_s = now
        return outcome

    def _failed(self, error: Exception) -> None:
        """The executor raised instead of answering; `outage` says so until it ends a run, or one has ended."""
        self._failure = Outage(str(error), self._clock.now() if self._failure is None else self._failure.since_s)

    def _lost(self, ticket: str, error: Exception) -> Outcome | None:
        """A run of which only our record is left. Its process, if it has one, is ended first; None while that has no answer."""
        try:
            self._executor.cancel(ticket)
        except NotAnsweringError:
            return None
        except (InfrastructureError, OSError, ValueError, LookupError, TypeError):
            pass  # nothing is left that could be ended
        watched, problem = self._running[ticket], self._study.problem
        order, known = watched.run.order, error.ran_s if isinstance(error, LostRunError) else None
        seconds = self._ran_s(watched) if known is None else known
        seconds = seconds or min(_SHORTEST_S, order.timeout_s)
        charged = problem.billing.charge(seconds, float(problem.price[order.row]), boots=order.boots)
        detail = f"lost: {error}; charged for {format_duration(seconds)}, up to its last sign of life"
        return Outcome.failed(FailureReason.INFRA, detail, seconds=seconds, charged_usd=charged)

    def _ran_s(self, watched: _Watched) -> float:
        """How long a run was seen to run: by us, or by heartbeats in the journal; at most until it was to be stopped."""
        ours = watched.before_s + max(watched.seen_s - watched.since_s, 0.0)
        journals = 0.0
        for run in self._study.record.open_runs:
            if run.order.number == watched.number and run.launched_s is not None and run.heartbeat_s is not None:
                # A heartbeat only says that we were there: it counts for no longer than the executor knew of the run.
                journals = run.heartbeat_s - run.launched_s - max(self._clock.now() - watched.seen_s, 0.0)
        latest = watched.run.order.timeout_s + self._study.problem.billing.grace_s
        return min(max(ours, journals), latest)

    def _settle(self, order: Order, outcome: Outcome) -> None:
        try:
            observations = self._study.runs.settle_all(order, outcome)
        except TakenOverError:
            observations = ()
        self._running = {ticket: one for ticket, one in self._running.items() if one.number != order.number}
        self._starting.pop(order.number, None)
        if self._settled is not None:
            for observation in observations:
                self._settled(observation)
