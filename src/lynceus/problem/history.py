"""Runs of earlier jobs that a study may learn from: facts, as they were measured, in the columns of their own space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lynceus.errors import InputError
from lynceus.space.column import Scalar


@dataclass(frozen=True, eq=False)
class PastJob:
    """The finished and stopped runs of one earlier job. Nothing of it is charged."""

    name: str
    columns: Mapping[str, tuple[Scalar | None, ...]]
    """What describes the configuration of each run, by the name of the column `[n]`."""
    seconds: tuple[float, ...]
    """How long each run took `[n]`."""
    stopped: tuple[bool, ...]
    """Whether it was stopped: its true time is longer `[n]`."""
    source: str = ""
    """Where it was read from: a study and its storage, or a file."""
    metrics: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """What each run reported, by the name of the metric `[n]`; None for missing values."""
    deadline_s: float | None = None
    """The limit on time that it had; None for no limit."""
    related: bool = True
    """False: both jobs declare a family, and not the same one. It is stored and shown, but does not count."""

    def __post_init__(self) -> None:
        n = len(self.seconds)
        lengths = {len(cells) for cells in (*self.columns.values(), *self.metrics.values())} | {len(self.stopped)}
        if lengths != {n}:
            raise InputError(f"history: {self.name} has {n} running times and columns of other lengths.")
        if not n or not self.columns:
            raise InputError(f"history: {self.name} has no run; leave it out.")
        if not all(math.isfinite(one) and one > 0 for one in self.seconds):
            raise InputError(f"history: a run of {self.name} has a running time that is not above 0; leave it out.")

    def record(self) -> dict[str, Any]:
        """As JSON, so that a study stores exactly what it learnt from."""
        return {
            "name": self.name,
            "source": self.source,
            "columns": {name: list(cells) for name, cells in self.columns.items()},
            "seconds": list(self.seconds),
            "stopped": [int(one) for one in self.stopped],
            "metrics": {name: list(values) for name, values in self.metrics.items()},
            "deadline_s": self.deadline_s,
            "related": self.related,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> PastJob:
        """The job of a record."""
        seconds: Sequence[float] = record["seconds"]
        return cls(
            str(record["name"]),
            {str(name): tuple(cells) for name, cells in record["columns"].items()},
            tuple(float(one) for one in seconds),
            tuple(bool(one) for one in record.get("stopped") or [0] * len(seconds)),
            str(record.get("source", "")),
            {str(name): tuple(values) for name, values in (record.get("metrics") or {}).items()},
            None if record.get("deadline_s") is None else float(record["deadline_s"]),
            bool(record.get("related", True)),
        )
