"""Helpers of the lab's tests: a small job and an experiment, an engine that counts, traces without times."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lynceus.replay.run import Replay
from lynceus_lab.cell import Cell, Done, Setting
from lynceus_lab.engines import Crashed, InProcess

JOB = """\
name: toy
table: toy.csv
parameters: {vm: {kind: categorical}, nodes: {log: true}, rate: {log: true}}
price: usd
progress: {column: curve, every: 30s, target: 0.9}
deadline: {quantile: 0.5}
"""
EXPERIMENT = """\
title: A toy
source: A paper, Fig. 1
jobs: [{job}]
policies:
  capped: random+timeouts
  LA=0: {{preset: lynceus-2020, lookahead: 0}}
  plain: random
baseline: plain
seeds: 4
figures:
  - {{kind: cdf, title: "Money", level: 1.1}}
  - {{kind: cno-by-money, title: "Progress"}}
  - {{kind: table-cno, title: "Table"}}
  - {{kind: bars, title: "Decisions", quantity: decision, statistic: mean}}
claims:
  - id: capped-saves
    says: Timeouts save money
    published: 1.2×
    measure: {{kind: ratio, of: plain, to: capped, level: 1, statistic: p50}}
    holds: "> 0.1"
"""


def rows() -> list[str]:
    """24 configurations: large machines are faster and cost more, and other rates than 0.01 are slow."""
    lines = []
    for (vm, power), nodes, rate in itertools.product((("small", 1), ("large", 3)), (1, 2, 4, 8), (0.001, 0.01, 0.1)):
        seconds = 3600 / (power * nodes**0.8) * (1 if rate == 0.01 else 1.7) + 40 * nodes
        lines.append(f"{vm},{nodes},{rate},{seconds:.1f},{0.1 * power**0.9 * nodes:.4f},0.1 0.2 0.4")
    return lines


def write_job(folder: Path) -> Path:
    """The job file, with its table beside it."""
    (folder / "toy.csv").write_text("\n".join(["vm,nodes,rate,time_s,usd,curve", *rows()]) + "\n")
    path = folder / "toy.yaml"
    path.write_text(JOB)
    return path


def write_experiment(folder: Path) -> Path:
    """The experiment file, with the job beside it."""
    path = folder / "experiment.yaml"
    path.write_text(EXPERIMENT.format(job=write_job(folder)))
    return path


def changed(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must contain it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


class Counting:
    """An engine that runs cells in this process, counts them, and can let some crash."""

    def __init__(self, crash: Sequence[int] = (), stop_after: int | None = None) -> None:
        self.ran: list[Cell] = []
        self.crash, self.stop_after = crash, stop_after

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        for place, cell in enumerate(cells):
            if place == self.stop_after:
                raise KeyboardInterrupt
            self.ran.append(cell)
            yield Crashed(cell, "as requested") if place in self.crash else next(iter(InProcess()([cell])))


class Deadly(Setting):
    """A setting that kills the process that runs it."""

    @property
    def peer(self) -> str | None:
        os._exit(9)


class Slow(Setting):
    """A setting that takes 0.3 seconds more."""

    @property
    def peer(self) -> str | None:
        time.sleep(0.3)
        return None


def without_times(replay: Replay) -> tuple[object, ...]:
    """A replay without its decision times."""
    steps = tuple(
        (
            step.row,
            step.state,
            step.charged_usd,
            step.spent_usd,
            step.cno,
            step.seconds,
            repr(step.target_s),
            step.modelled,
        )
        for step in replay.steps
    )
    return replay.policy, replay.seed, steps, replay.reason, replay.cno_at_stop
