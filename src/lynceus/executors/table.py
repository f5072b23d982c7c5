"""An executor that answers from a table of measured runs, in simulated time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.executors.interface import LostRunError, Request
from lynceus.executors.simulation import SimulatedRun, Simulation, World
from lynceus.executors.synthetic_streams import SyntheticStream, early_end
from lynceus.models.seeds import generator
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Outcome

MeasuredNoise = Literal["none", "measured"]
"""Whether all runs of a configuration take the time of its row, or each takes one of the times that were measured."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measured time and metrics of every configuration of a space, by row."""

    seconds: NDArray[np.float64]
    """`[q]`"""
    metrics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """What a finished run reports, `[q]` each."""
    progress: tuple[tuple[float, ...], ...] | None = None
    """Progress of every run at every tick; None if it was not recorded."""
    tick_s: float = 30.0
    """Seconds between two values of `progress`."""
    streams: Mapping[str, SyntheticStream] = field(default_factory=dict)
    """What runs stream while they run, made up from published quantiles; limits on their statistics may end a run early."""
    repeats: tuple[tuple[float, ...], ...] | None = None
    """Seconds of every run of each configuration, of which `seconds` has one number; empty where only that one is known. None if runs
    were not repeated."""

    def run_seconds(self, row: int, run: int, seed: int) -> float:
        """What the run with this number (0: the first) of a configuration took, drawn from its measured runs.

        Each of them comes up once, in random order, before any of them comes up again.
        """
        measured = self.repeats[row] if self.repeats is not None else ()
        if not measured:
            return float(self.seconds[row])
        turn, place = divmod(run, len(measured))
        order = generator(seed, "measured run", row, turn).permutation(len(measured))
        return measured[int(order[place])]

    def trace(self, row: int, until_s: float, run_s: float | None = None) -> tuple[tuple[float, float], ...]:
        """(seconds, progress) pairs up to a moment, of a run that takes `run_s` in all; None: as long as the row says."""
        if self.progress is None:
            return ()
        tick_s = self.tick_s if run_s is None else self.tick_s * run_s / float(self.seconds[row])
        times = ((i + 1) * tick_s for i in range(len(self.progress[row])))
        return tuple((t, p) for t, p in zip(times, self.progress[row], strict=True) if t <= until_s)


class SimulatedClock:
    """A clock that jumps to the next moment at which a run ends."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ends: list[float] = []

    def now(self) -> float:
        """Simulated seconds since the start."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Jump to the next end of a run, or by `seconds` if no run is active."""
        while self._ends and self._ends[0] <= self._now:
            heapq.heappop(self._ends)
        self._now = heapq.heappop(self._ends) if self._ends else self._now + seconds

    def add_end(self, moment: float) -> None:
        """A run will end at `moment`."""
        heapq.heappush(self._ends, moment)


class TableExecutor:
    """Looks the row up, applies the timeout, and advances a simulated clock. It reads only rows that are launched."""

    def __init__(
        self,
        problem: Problem,
        measurements: Measurements,
        clock: SimulatedClock,
        *,
        noise: MeasuredNoise = "none",
        world: World | None = None,
        seed: int = 0,
    ) -> None:
        """`noise` draws the measured repeats, `world` adds noise, failures or interruptions to the table; all are drawn with `seed`."""
        self._problem, self._measured, self._clock = problem, measurements, clock
        self._noise, self._seed = noise, seed
        self._launched: dict[int, list[int]] = {}
        """Numbers of the trials of each row, in order."""
        self._simulate: Simulation = self._measurement if world is None else world(self._measurement, seed)
        self._runs: dict[str, tuple[float, Outcome, Request]] = {}

    def launch(self, request: Request) -> str:
        """Start a simulated run."""
        ticket = f"{request.study}/{request.number}"
        outcome, delay_s = self._outcome(request)
        boot_s = self._problem.billing.boot_s if request.boots else 0.0
        end = self._clock.now() + boot_s + delay_s + outcome.seconds
        self._runs[ticket] = (end, outcome, request)
        self._clock.add_end(end)
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome, once the simulated clock has reached it."""
        if ticket not in self._runs:
            raise LostRunError(f"the simulated run {ticket} belongs to another process")
        end, outcome, _ = self._runs[ticket]
        return outcome if self._clock.now() >= end else None

    def cancel(self, ticket: str) -> None:
        """Stop the run at the current simulated time."""
        end, outcome, request = self._runs[ticket]
        ran = max(0.0, outcome.seconds - max(0.0, end - self._clock.now()))
        if ran < outcome.seconds:
            stopped, _ = self._outcome(replace(request, timeout_s=ran))
            self._runs[ticket] = (self._clock.now(), stopped, request)

    def _outcome(self, request: Request) -> tuple[Outcome, float]:
        """The outcome with its charge, and by how many seconds the machines started late."""
        run = self._simulate(request)
        seconds, price = run.outcome.seconds, float(self._problem.price[request.row])
        charged = self._problem.billing.charge(seconds + run.delay_s, price, boots=request.boots)
        return replace(run.outcome, charged_usd=charged), run.delay_s

    def _measurement(self, request: Request) -> SimulatedRun:
        """The measured run, cut off at the timeout."""
        measured, row = self._measured, request.row
        full, run_s = float(measured.seconds[row]), None
        if self._noise == "measured":
            full = run_s = measured.run_seconds(row, self._run(request), self._seed)
        early = early_end(measured.streams, request, full, self._seed) if measured.streams else None
        if early is not None and early.seconds <= request.timeout_s:
            end = End.FINISHED if early.met else End.TIMEOUT
            trace, known = measured.trace(row, early.seconds, run_s), dict(early.statistics)
            return SimulatedRun(Outcome(end, early.seconds, 0.0, known, trace, detail=early.detail, oracle_s=full))
        ran = min(full, request.timeout_s)
        if full > request.timeout_s:
            return SimulatedRun(Outcome(End.TIMEOUT, ran, 0.0, trace=measured.trace(row, ran, run_s), oracle_s=full))
        metrics = {name: float(values[row]) for name, values in measured.metrics.items() if not math.isnan(values[row])}
        return SimulatedRun(Outcome(End.FINISHED, ran, 0.0, metrics, measured.trace(row, ran, run_s)))

    def _run(self, request: Request) -> int:
        """How often the row was launched before this trial; a trial that is looked up again is the same run."""
        numbers = self._launched.setdefault(request.row, [])
        if request.number not in numbers:
            numbers.append(request.number)
        return numbers.index(request.number)
