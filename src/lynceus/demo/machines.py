"""A small catalog of fictional machines with prices like those of large clouds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine type."""

    vcpus: int
    ram_gb: int
    usd_per_hour: float
    speed: float
    """Work per core and second, relative to a general-purpose core."""
    network_gb_per_s: float
    """Gigabytes per second over its own link."""

    def columns(self) -> dict[str, float]:
        """The catalog's columns for this machine."""
        return {name: getattr(self, name) for name in self.__slots__}


MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        "compute.4": Machine(4, 8, 0.170, 1.20, 0.30),
        "compute.8": Machine(8, 16, 0.340, 1.20, 0.45),
        "compute.16": Machine(16, 32, 0.680, 1.20, 0.75),
        "general.4": Machine(4, 16, 0.192, 1.00, 0.30),
        "general.8": Machine(8, 32, 0.384, 1.00, 0.45),
        "general.16": Machine(16, 64, 0.768, 1.00, 0.75),
        "memory.4": Machine(4, 32, 0.252, 1.00, 0.35),
        "memory.8": Machine(8, 64, 0.504, 1.00, 0.50),
    }
)
"""By name: compute-optimised machines have 2 GB of memory per core, general ones 4, memory-optimised ones 8."""
