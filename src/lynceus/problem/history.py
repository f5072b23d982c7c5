"""Runs of earlier jobs that a study may learn from: facts, as they were measured, in the columns of their own space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lynceus.errors import InputError
from lynceus.problem.job_input import JobInput
from lynceus.space.column import Scalar

FEWEST_RUNS = 3
"""Fewer runs of a past job say nothing about its shape."""


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
    input: JobInput | None = None
    """What its runs read; None where that is not known, or where they read several inputs."""

    def __post_init__(self) -> None:
        n = len(self.seconds)
        lengths = {len(cells) for cells in (*self.columns.values(), *self.metrics.values())} | {len(self.stopped)}
        if lengths != {n}:
            raise InputError(f"history: {self.name} has {n} running times and columns of other lengths.")
        if not n or not self.columns:
            raise InputError(f"history: {self.name} has no run; leave it out.")
        if not all(math.isfinite(one) and one > 0 for one in self.seconds):
            raise InputError(f"history: a run of {self.name} has a running time that is not above 0; leave it out.")

    def by_input(self, inputs: Sequence[JobInput | None]) -> tuple[PastJob, ...]:
        """One job for each input that runs read, because times on different amounts of data do not make one curve.

        `inputs [n]` says what each run read. Runs on inputs with fewer than three runs stay together: what they read counts as unknown.
        """
        groups: list[tuple[JobInput | None, list[int]]] = []
        for place, read in enumerate(inputs):
            same = (runs for one, runs in groups if one == read or (one and read and one.equals(read)))
            if (known := next(same, None)) is None:
                groups.append((read, [place]))
            else:
                known.append(place)
        if len(groups) == 1:
            return (replace(self, input=groups[0][0]),)
        split = [(read, runs) for read, runs in groups if read and len(runs) >= FEWEST_RUNS]
        rest = sorted(set(range(len(inputs))).difference(*(runs for _, runs in split)))
        found = [self._only(runs, f"{self.name} on {read}", read) for read, runs in split]
        return (*found, self._only(rest, self.name, None)) if rest else tuple(found)

    def _only(self, runs: Sequence[int], name: str, read: JobInput | None) -> PastJob:
        """Some of its runs, which read one input."""
        return replace(
            self,
            name=name,
            columns={column: tuple(cells[run] for run in runs) for column, cells in self.columns.items()},
            seconds=tuple(self.seconds[run] for run in runs),
            stopped=tuple(self.stopped[run] for run in runs),
            metrics={metric: tuple(values[run] for run in runs) for metric, values in self.metrics.items()},
            input=read,
        )

    def record(self) -> dict[str, Any]:
        """As JSON, so that a study stores exactly what it learnt from."""
        given = {} if self.input is None else {"input": self.input.record()}
        return {
            "name": self.name,
            "source": self.source,
            "columns": {name: list(cells) for name, cells in self.columns.items()},
            "seconds": list(self.seconds),
            "stopped": [int(one) for one in self.stopped],
            "metrics": {name: list(values) for name, values in self.metrics.items()},
            "deadline_s": self.deadline_s,
            "related": self.related,
            **given,
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
            JobInput.of_record(record.get("input")),
        )
