"""An executor that answers from a table of measured runs and lives in pretended time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lynceus.executor.executor import LostRunError, Request
from lynceus.executor.worlds import Happening, Happens, World
from lynceus.history import End, Outcome
from lynceus.problem import Problem


@dataclass(frozen=True, eq=False)
class Measurements:
    """What every configuration of a space really took, row for row."""

    seconds: NDArray[np.float64]
    """`[q]`"""
    metrics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """What a finished run reports, `[q]` each."""
    progress: tuple[tuple[float, ...], ...] | None = None
    """Progress of every run at every tick; nothing when it was not recorded."""
    tick_s: float = 30.0
    """Seconds between two values of `progress`."""

    def trace(self, row: int, until_s: float) -> tuple[tuple[float, float], ...]:
        """(seconds, progress) pairs seen up to a moment."""
        if self.progress is None:
            return ()
        times = ((i + 1) * self.tick_s for i in range(len(self.progress[row])))
        return tuple((t, p) for t, p in zip(times, self.progress[row], strict=True) if t <= until_s)


class PretendedClock:
    """A clock that jumps to the next moment at which something ends."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ends: list[float] = []

    def now(self) -> float:
        """Pretended seconds since the start."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Jump to the next end of a run, or by `seconds` when nothing runs."""
        while self._ends and self._ends[0] <= self._now:
            heapq.heappop(self._ends)
        self._now = heapq.heappop(self._ends) if self._ends else self._now + seconds

    def expect(self, moment: float) -> None:
        """Something will end at `moment`."""
        heapq.heappush(self._ends, moment)


class TableExecutor:
    """Looks the row up, honours the cap, and advances a pretended clock. Only rows that are launched are ever read."""

    def __init__(
        self,
        problem: Problem,
        measurements: Measurements,
        clock: PretendedClock,
        *,
        world: World | None = None,
        seed: int = 0,
    ) -> None:
        """`world` makes life harder than the table; `seed` is the luck that its misfortunes draw."""
        self._problem, self._measured, self._clock = problem, measurements, clock
        self._happens: Happens = self._measurement if world is None else world(self._measurement, seed)
        self._runs: dict[str, tuple[float, Outcome, Request]] = {}

    def launch(self, request: Request) -> str:
        """Start a pretended run."""
        ticket = f"{request.study}/{request.number}"
        outcome, late_s = self._outcome(request)
        boot_s = self._problem.tariff.boot_s if request.boots else 0.0
        end = self._clock.now() + boot_s + late_s + outcome.seconds
        self._runs[ticket] = (end, outcome, request)
        self._clock.expect(end)
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome, once the pretended clock has reached it."""
        if ticket not in self._runs:
            raise LostRunError(f"the pretended run {ticket} belongs to another process")
        end, outcome, _ = self._runs[ticket]
        return outcome if self._clock.now() >= end else None

    def cancel(self, ticket: str) -> None:
        """End the run at the pretended present."""
        end, outcome, request = self._runs[ticket]
        ran = max(0.0, outcome.seconds - max(0.0, end - self._clock.now()))
        if ran < outcome.seconds:
            stopped, _ = self._outcome(replace(request, cap_s=ran))
            self._runs[ticket] = (self._clock.now(), stopped, request)

    def _outcome(self, request: Request) -> tuple[Outcome, float]:
        """What happens, with its price; and the seconds that the machines were late."""
        happening = self._happens(request)
        seconds, price = happening.outcome.seconds, float(self._problem.price[request.row])
        charged = self._problem.tariff.charge(seconds + happening.late_s, price, boots=request.boots)
        return replace(happening.outcome, charged_usd=charged), happening.late_s

    def _measurement(self, request: Request) -> Happening:
        """What the table says, cut at the cap."""
        measured, row = self._measured, request.row
        full = float(measured.seconds[row])
        ran = min(full, request.cap_s)
        if full > request.cap_s:
            return Happening(Outcome(End.CAPPED, ran, 0.0, trace=measured.trace(row, ran), oracle_s=full))
        metrics = {name: float(values[row]) for name, values in measured.metrics.items() if not math.isnan(values[row])}
        return Happening(Outcome(End.FINISHED, ran, 0.0, metrics, measured.trace(row, ran)))
