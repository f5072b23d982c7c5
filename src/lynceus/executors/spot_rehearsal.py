"""A rehearsal of spot machines: wraps an executor and stops runs as a cloud does that preempts its machines."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from lynceus.executors.interface import (
    Executor,
    Outage,
    OwnedResource,
    Request,
    SupportsCleanup,
    SupportsClose,
    SupportsOutage,
)
from lynceus.models.seeds import generator
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import FailureReason, Outcome

_PREEMPTED = "taken-back"
"""A file in the run directory: the rehearsal stopped this run, not the user."""
_LIFETIME = "life"
"""Contains the lifetime of this run's machines in seconds, and when they started."""


class SpotRehearsal:
    """Stops runs on spot machines after an exponentially distributed lifetime. They are charged and count as preempted.

    Lifetimes depend only on the seed and the trial's number and are noted in the run directory, so that a study that is resumed after a
    crash sees the same preemptions.
    """

    def __init__(self, inner: Executor, problem: Problem, seed: int) -> None:
        self._inner, self._problem, self._seed = inner, problem, seed

    def launch(self, request: Request) -> str:
        """Start the run and note the lifetime of its machines."""
        ticket = self._inner.launch(request)
        rate = 0.0 if self._problem.preemption is None else float(self._problem.preemption.rate_per_s[request.row])
        if rate > 0:
            lifetime_s = float(generator(self._seed, "taken back", request.number).exponential()) / rate
            Path(ticket, _LIFETIME).write_text(f"{lifetime_s!r} {time.time()!r}\n", encoding="utf-8")
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome of the run. While it runs, its machines may be preempted."""
        outcome = self._inner.collect(ticket)
        if outcome is None:
            self._preempt_if_due(ticket)
            return None
        if outcome.reason is FailureReason.USER and Path(ticket, _PREEMPTED).exists():
            detail = f"the machines were preempted after {outcome.seconds:.1f} s"
            return replace(outcome, reason=FailureReason.PREEMPTED, detail=detail)
        return outcome

    def cancel(self, ticket: str) -> None:
        """Stop the run for the user: this is not a preemption."""
        self._inner.cancel(ticket)

    def outage(self) -> Outage | None:
        """What the inner executor cannot reach."""
        return self._inner.outage() if isinstance(self._inner, SupportsOutage) else None

    def close(self) -> None:
        """Close the inner executor."""
        if isinstance(self._inner, SupportsClose):
            self._inner.close()

    def owned_resources(self) -> list[OwnedResource]:
        """What the inner executor created outside the storage."""
        return self._inner.owned_resources() if isinstance(self._inner, SupportsCleanup) else []

    def remove(self, resource: OwnedResource) -> None:
        """Let the inner executor remove it."""
        if isinstance(self._inner, SupportsCleanup):
            self._inner.remove(resource)

    def _preempt_if_due(self, ticket: str) -> None:
        try:
            lifetime_s, began = (float(word) for word in Path(ticket, _LIFETIME).read_text(encoding="utf-8").split())
        except (OSError, ValueError):
            return
        if time.time() - began >= lifetime_s and not Path(ticket, _PREEMPTED).exists():
            Path(ticket, _PREEMPTED).touch()
            self._inner.cancel(ticket)
