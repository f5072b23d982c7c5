"""Simulated runs of replayed tables. A world wraps a simulation and disturbs it; the laboratory has noise, failures and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lynceus.executors.interface import Request
from lynceus.trial.outcome import Outcome


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """The result of a simulated run, not charged yet."""

    outcome: Outcome
    """Its charge is still 0."""
    delay_s: float = 0.0
    """Seconds that the machines took to boot beyond the billing's `boot_s`; they are charged."""


Simulation = Callable[[Request], SimulatedRun]
"""The result of a request. Called again with a smaller timeout, it returns the same run, cut off earlier."""


class World(Protocol):
    """One kind of disturbance."""

    def __call__(self, simulate: Simulation, seed: int) -> Simulation:
        """The same runs with this disturbance, drawn with the study's seed."""
