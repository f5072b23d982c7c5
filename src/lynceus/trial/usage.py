"""What a run used of its machines, as its supervisor measured it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory, processors and disks of one run; of the first machine, if it had several."""

    peak_memory_bytes: float
    """Largest amount of memory that all its processes held at once, files in the page cache not included."""
    cpu_s: float
    """Seconds of processor time of all its processes."""
    read_bytes: float
    """Read from disks; what the page cache held is not counted."""
    written_bytes: float

    def __post_init__(self) -> None:
        for name in ("peak_memory_bytes", "cpu_s", "read_bytes", "written_bytes"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"a run cannot use {name} = {getattr(self, name)!r}")

    @classmethod
    def read(cls, record: Mapping[str, Any] | None) -> Usage | None:
        """The usage in a record; None if there is none, or it makes no sense: it must not cost a run."""
        try:
            return None if record is None else cls(**{name: float(record[name]) for name in cls.__slots__})
        except (KeyError, TypeError, ValueError):
            return None

    def cpus(self, seconds: float) -> float:
        """Processors kept busy on average.

        >>> Usage(2e9, 90.0, 0.0, 0.0).cpus(60.0)
        1.5
        """
        return self.cpu_s / seconds if seconds > 0 else 0.0
