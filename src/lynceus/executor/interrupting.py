"""A rehearsal of spot machines: an executor around another one that really ends runs, as a cloud does that wants its machines back."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from lynceus.executor.executor import Belonging, Executor, Request
from lynceus.history import Outcome, Reason
from lynceus.problem import Problem
from lynceus.randomness import generator

_MARK = "taken-back"
"""A file in the run directory: we ended this run, nobody else did."""
_LIFE = "life"
"""Holds the seconds that the machines of this run live."""


class Interrupting:
    """Ends runs on spot machines after an exponentially distributed life; what ran is charged, and the run counts as preempted.

    The luck is a function of seed and trial, and what was done is noted in the run's directory, so that whoever continues the study
    after a crash sees the same interruptions.
    """

    def __init__(self, inner: Executor, problem: Problem, seed: int) -> None:
        self._inner, self._problem, self._seed = inner, problem, seed

    def launch(self, request: Request) -> str:
        """Start the run and note how long its machines will live."""
        ticket = self._inner.launch(request)
        rate = 0.0 if self._problem.restarts is None else float(self._problem.restarts.rate_per_s[request.row])
        if rate > 0:
            life = float(generator(self._seed, "taken back", request.number).exponential()) / rate
            Path(ticket, _LIFE).write_text(f"{life!r} {time.time()!r}\n", encoding="utf-8")
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended; while it runs, its machines may be taken back."""
        outcome = self._inner.collect(ticket)
        if outcome is None:
            self._take_back(ticket)
            return None
        if outcome.reason is Reason.USER and Path(ticket, _MARK).exists():
            detail = f"the machines were taken back after {outcome.seconds:.1f} s"
            return replace(outcome, reason=Reason.PREEMPTED, detail=detail)
        return outcome

    def cancel(self, ticket: str) -> None:
        """End the run for a person: that is no interruption."""
        self._inner.cancel(ticket)

    def close(self) -> None:
        """Let go of what the inner executor holds."""
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()

    def belongings(self) -> list[Belonging]:
        """What the inner executor has outside the storage."""
        inner: Any = self._inner
        return inner.belongings() if hasattr(inner, "belongings") else []

    def end(self, belonging: Belonging) -> None:
        """End or remove it."""
        inner: Any = self._inner
        if hasattr(inner, "end"):
            inner.end(belonging)

    def _take_back(self, ticket: str) -> None:
        try:
            life, began = (float(word) for word in Path(ticket, _LIFE).read_text(encoding="utf-8").split())
        except (OSError, ValueError):
            return
        if time.time() - began >= life and not Path(ticket, _MARK).exists():
            Path(ticket, _MARK).touch()
            self._inner.cancel(ticket)
