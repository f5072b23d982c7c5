"""CPUs and memory of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.errors import InputError


@dataclass(frozen=True, slots=True)
class Resources:
    """CPUs and memory of a run: limits on the local machine, requests to a cluster."""

    cpus: float | None = None
    """CPU cores, possibly fractional; None for all."""
    memory_bytes: int | None = None
    """None for no limit."""

    def __post_init__(self) -> None:
        if self.cpus is not None and not (math.isfinite(self.cpus) and self.cpus > 0):
            raise InputError(f"resources: got cpus of {self.cpus!r}; expected a positive number.")
        if self.memory_bytes is not None and self.memory_bytes < 1 << 20:
            raise InputError(f"resources: got {self.memory_bytes} bytes of memory; expected at least 1 MiB.")
