"""Less ideal worlds for replayed tables: noisy runs, failures, slow boots, interruptions of spot machines.

A world wraps a simulation (a function from a request to a simulated run) and returns another one, so worlds can be combined. All random
numbers depend on the study's seed and the trial's number only: the same replay meets the same failures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.executors.simulation import SimulatedRun, Simulation, World
from lynceus.models.seeds import generator
from lynceus.trial.outcome import End, FailureReason, Outcome


@dataclass(frozen=True, slots=True)
class Noise:
    """Two runs of one configuration differ: times are multiplied by a lognormal factor of mean 1."""

    spread: float
    """Standard deviation of the factor's logarithm."""

    def __post_init__(self) -> None:
        _check_positive("noise", self.spread)

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """Runs with noise."""

        def noisy(request: Request) -> SimulatedRun:
            normal = generator(seed, "noise", request.number).normal()
            factor = math.exp(self.spread * normal - self.spread**2 / 2)
            plain = simulate(replace(request, timeout_s=request.timeout_s / factor))
            seen = plain.outcome
            ran = request.timeout_s if seen.end is End.TIMEOUT else min(seen.seconds * factor, request.timeout_s)
            stretched = replace(
                seen,
                seconds=ran,
                trace=tuple((moment * factor, progress) for moment, progress in seen.trace),
                oracle_s=None if seen.oracle_s is None else max(seen.oracle_s * factor, ran),
            )
            return replace(plain, outcome=stretched)

        return noisy


@dataclass(frozen=True, slots=True)
class Failures:
    """Some runs fail at a random moment, whatever their configuration; the time until then is charged."""

    chance: float
    """Share of runs that fail if they run to their end."""

    def __post_init__(self) -> None:
        _check_probability("failures", self.chance)

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """Runs that may fail."""

        def failing(request: Request) -> SimulatedRun:
            plain = simulate(request)
            draw, fraction = generator(seed, "failure", request.number).random(2)
            full = plain.outcome.seconds if plain.outcome.oracle_s is None else plain.outcome.oracle_s
            if draw >= self.chance:
                return plain
            return _fail_at(plain, fraction * full, FailureReason.INFRA, "a machine failed")

        return failing


@dataclass(frozen=True, slots=True)
class SlowBoots:
    """Machines take longer to boot than the billing says, each time by a different amount; the delay is charged."""

    mean_s: float
    """Mean of the exponentially distributed delay."""

    def __post_init__(self) -> None:
        _check_positive("slow boots", self.mean_s)

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """Runs that wait for their machines."""

        def waiting(request: Request) -> SimulatedRun:
            plain = simulate(request)
            if not request.boots:
                return plain
            delay_s = self.mean_s * float(generator(seed, "slow boot", request.number).exponential())
            return replace(plain, delay_s=plain.delay_s + delay_s)

        return waiting


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Spot machines are preempted after an exponentially distributed lifetime; the time until then is charged."""

    mean_life_s: float
    """Of one machine."""
    only: str | None = None
    """The parameter that says whether a configuration runs on spot machines, such as use_spot; None if all do. If it is set, the run ends
    when the first of its `num_nodes` machines is preempted."""

    def __post_init__(self) -> None:
        _check_positive("interruptions", self.mean_life_s)

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """Runs that may be interrupted."""

        def interrupted(request: Request) -> SimulatedRun:
            if self.only is not None and not request.params.get(self.only):
                return simulate(request)
            nodes = request.params.get("num_nodes", 1) if self.only is not None else 1
            life_s = self.mean_life_s * float(generator(seed, "interruption", request.number).exponential())
            life_s /= nodes if isinstance(nodes, int) else 1
            return _fail_at(simulate(request), life_s, FailureReason.PREEMPTED, "the machines were preempted")

        return interrupted


@dataclass(frozen=True, slots=True)
class Stacked:
    """Several worlds at once; the first one is applied first."""

    worlds: tuple[World, ...]

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """Runs with all of these disturbances."""
        for world in self.worlds:
            simulate = world(simulate, seed)
        return simulate


def _fail_at(plain: SimulatedRun, moment: float, reason: FailureReason, detail: str) -> SimulatedRun:
    """The same run, failed at `moment` if it was still running then, even if it failed later by itself."""
    seen = plain.outcome
    if moment >= seen.seconds:
        return plain
    trace = tuple(point for point in seen.trace if point[0] <= moment)
    return replace(plain, outcome=Outcome.failed(reason, f"{detail} after {moment:.0f} s", seconds=moment, trace=trace))


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"world: got {name} of {value!r}; expected a number above 0.")


def _check_probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"world: got a chance of {value!r} for {name}; expected a number between 0 and 1.")
