"""The loop: ask, launch, wait, settle. The same for live runs and for replayed tables; everything clever is in the parts."""

from __future__ import annotations

from collections.abc import Callable

from lynceus.executor.executor import Clock, Executor, Request
from lynceus.history import Observation, Order, Outcome
from lynceus.study import Study

_POLL_S = 0.2
"""How often a live executor is asked whether a run has ended."""


def explore(
    study: Study,
    executor: Executor,
    clock: Clock,
    *,
    parallel: int = 1,
    ordered: Callable[[Order], None] | None = None,
    settled: Callable[[Observation], None] | None = None,
) -> None:
    """Run trials, at most `parallel` at a time, until the study stops."""
    running: dict[str, Order] = {}
    while True:
        while len(running) < parallel and (order := study.order()) is not None:
            if ordered is not None:
                ordered(order)
            running[executor.launch(request(study, order))] = order
        if not running:
            return
        finished = _wait(executor, clock, running)
        for ticket, outcome in finished:
            observation = study.settle(running.pop(ticket), outcome)
            if settled is not None:
                settled(observation)


def request(study: Study, order: Order) -> Request:
    """What an executor needs to know of an order."""
    return Request(study.name, order.number, order.row, study.problem.space.point(order.row), order.cap_s, order.boots)


def _wait(executor: Executor, clock: Clock, running: dict[str, Order]) -> list[tuple[str, Outcome]]:
    while True:
        collected = [(ticket, executor.collect(ticket)) for ticket in running]
        finished = [(ticket, outcome) for ticket, outcome in collected if outcome is not None]
        if finished:
            return finished
        clock.sleep(_POLL_S)
