"""An executor that is called from a thread of its own, so that a call which hangs holds up neither the run loop nor Ctrl-C."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.interface import Executor, Outage, Request, SupportsOutage
from lynceus.trial.outcome import Outcome

_PATIENCE_S = 2.0
"""How long a call waits for its answer before it gives the caller something else to do."""
_SLOW_S = 4.0
"""A call without an answer for so long is an outage."""


class NotAnsweringError(InfrastructureError):
    """The executor is still busy. The same call, made again, gets the answer when there is one."""


@dataclass
class _Call:
    name: str
    ask: Callable[[], Any]
    began_s: float = field(default_factory=time.time)
    ended: threading.Event = field(default_factory=threading.Event)
    answer: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self.ask()
        except BaseException as error:
            self.error = error
        self.ended.set()


class BoundedCalls:
    """An executor whose calls return within seconds: with their answer, or with `NotAnsweringError`.

    Calls are made one at a time, in one thread, and all of them may be repeated: an executor starts a run once, however often it is
    asked to. So an answer that nobody waits for any more is forgotten.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._last: _Call | None = None
        self._thread: threading.Thread | None = None

    def launch(self, request: Request) -> str:
        """Start the run and return its ticket."""
        return str(self._answer(f"trial {request.number} was to be started", lambda: self._executor.launch(request)))

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome of the run; None while it is queued or running."""
        outcome: Outcome | None = self._answer(
            f"the state of {ticket} was asked", lambda: self._executor.collect(ticket)
        )
        return outcome

    def cancel(self, ticket: str) -> None:
        """Stop the run now."""
        self._answer(f"{ticket} was to be stopped", lambda: self._executor.cancel(ticket))

    def outage(self) -> Outage | None:
        """A call that hangs, or what the executor itself says."""
        call = self._last
        if call is not None and not call.ended.is_set() and time.time() - call.began_s >= _SLOW_S:
            return Outage(f"{call.name}, and the executor does not answer", call.began_s)
        return self._executor.outage() if isinstance(self._executor, SupportsOutage) else None

    def close(self) -> None:
        """End the thread, unless it hangs; the executor itself stays open."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join(_PATIENCE_S if self._last is None or self._last.ended.is_set() else 0.0)
            self._thread = None

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        call, waited = self._last, True
        if call is None or (call.ended.is_set() and call.name != name):
            call, waited = _Call(name, ask), False
            self._last = call
            self._start(call)
        if not call.ended.wait(0.0 if waited else _PATIENCE_S) or call.name != name:
            raise NotAnsweringError(f"{call.name}, and the executor does not answer")
        self._last = None
        if call.error is not None:
            raise call.error
        return call.answer

    def _start(self, call: _Call) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="executor", daemon=True)
            self._thread.start()
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
