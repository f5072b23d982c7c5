"""Harder worlds for replayed tables: wrappers that make runs noisy, let them fail, boot slowly, or lose their spot machines.

A world wraps what would happen (a function from a request to a happening) and gives back another such function, so worlds can be
stacked. All luck is a function of the study's seed and of the trial's number: the same replay meets the same misfortune.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from lynceus.errors import InputError
from lynceus.executor.executor import Request
from lynceus.history import End, Outcome, Reason
from lynceus.randomness import generator


@dataclass(frozen=True, slots=True)
class Happening:
    """What a run comes to, before anybody asks for money."""

    outcome: Outcome
    """Its charge is not yet filled in."""
    late_s: float = 0.0
    """Seconds that the machines booted longer than the tariff says; they are billed."""


Happens = Callable[[Request], Happening]
"""What would come of a request; asked again with a lower cap, it tells the same run cut shorter."""


class World(Protocol):
    """One misfortune."""

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """The same runs under this misfortune, as the study with this seed meets it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Two runs of one configuration differ: times are multiplied by a lognormal factor of mean 1."""

    spread: float
    """Standard deviation of the factor's logarithm."""

    def __post_init__(self) -> None:
        _positive("noise", self.spread)

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """Runs with noise."""

        def noisy(request: Request) -> Happening:
            luck = generator(seed, "noise", request.number).normal()
            factor = math.exp(self.spread * luck - self.spread**2 / 2)
            plain = happens(replace(request, cap_s=request.cap_s / factor))
            seen = plain.outcome
            ran = request.cap_s if seen.end is End.CAPPED else min(seen.seconds * factor, request.cap_s)
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
    """Some runs fail by no fault of their configuration, at a moment anywhere in their course; what ran is paid."""

    chance: float
    """Share of runs that would not reach their end."""

    def __post_init__(self) -> None:
        _chance("failures", self.chance)

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """Runs that may fail."""

        def failing(request: Request) -> Happening:
            plain = happens(request)
            luck, place = generator(seed, "failure", request.number).random(2)
            full = plain.outcome.seconds if plain.outcome.oracle_s is None else plain.outcome.oracle_s
            return plain if luck >= self.chance else _cut(plain, place * full, Reason.INFRA, "a machine failed")

        return failing


@dataclass(frozen=True, slots=True)
class SlowBoots:
    """Machines take longer to come up than the tariff says, each time another while; the wait is billed."""

    mean_s: float
    """Mean of the exponentially distributed delay."""

    def __post_init__(self) -> None:
        _positive("slow boots", self.mean_s)

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """Runs that wait for their machines."""

        def waiting(request: Request) -> Happening:
            plain = happens(request)
            if not request.boots:
                return plain
            late = self.mean_s * float(generator(seed, "slow boot", request.number).exponential())
            return replace(plain, late_s=plain.late_s + late)

        return waiting


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Spot machines are taken back after an exponentially distributed life; what ran is paid and lost."""

    mean_life_s: float
    """Of one machine."""
    only: str | None = None
    """The parameter that says whether a configuration runs on spot machines, such as use_spot; nothing: all do. Where it is set, the
    first of `num_nodes` machines to go ends the run."""

    def __post_init__(self) -> None:
        _positive("interruptions", self.mean_life_s)

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """Runs that may be interrupted."""

        def interrupted(request: Request) -> Happening:
            if self.only is not None and not request.params.get(self.only):
                return happens(request)
            nodes = request.params.get("num_nodes", 1) if self.only is not None else 1
            life = self.mean_life_s * float(generator(seed, "interruption", request.number).exponential())
            life /= nodes if isinstance(nodes, int) else 1
            return _cut(happens(request), life, Reason.PREEMPTED, "the cloud took the machines back")

        return interrupted


@dataclass(frozen=True, slots=True)
class Stacked:
    """Several misfortunes at once, the first nearest to the run."""

    worlds: tuple[World, ...]

    def __call__(self, happens: Happens, seed: int) -> Happens:
        """Runs that meet all of them."""
        for world in self.worlds:
            happens = world(happens, seed)
        return happens


def _cut(plain: Happening, moment: float, reason: Reason, detail: str) -> Happening:
    """The same run, failed at `moment` if it was still running then."""
    seen = plain.outcome
    if seen.end is End.FAILED or moment >= seen.seconds:
        return plain
    trace = tuple(point for point in seen.trace if point[0] <= moment)
    return replace(
        plain,
        outcome=Outcome(End.FAILED, moment, 0.0, trace=trace, reason=reason, detail=f"{detail} after {moment:.0f} s"),
    )


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"world: {name} of {value!r} came; give a number above 0.")


def _chance(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"world: a chance of {value!r} for {name} came; give a number between 0 and 1.")
