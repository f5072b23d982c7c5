"""The machine that a configuration stands for, as far as an executor must know it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.errors import InputError


@dataclass(frozen=True, slots=True)
class Shape:
    """Processors and memory of a run: a limit on this machine, a request to a cluster."""

    cpus: float | None = None
    """Processors, perhaps a fraction; nothing: all."""
    memory_bytes: int | None = None
    """Nothing: no limit."""

    def __post_init__(self) -> None:
        if self.cpus is not None and not (math.isfinite(self.cpus) and self.cpus > 0):
            raise InputError(f"resources: cpus is {self.cpus!r}; give a positive number.")
        if self.memory_bytes is not None and self.memory_bytes < 1 << 20:
            raise InputError(f"resources: memory is {self.memory_bytes} bytes; give at least 1 MiB.")
