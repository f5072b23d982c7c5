"""A synthetic, recurring Spark-like job: formulas for the running time of each configuration, shaped like those of real clusters.

The job reads `INPUT_GB`, keeps `CACHED_GB` in memory and works through `STAGES` rounds of computing and shuffling. With m nodes,
C cores in use of relative speed v, E executors and P shuffle partitions a run takes

    T = (serial + compute · lumps · skew · spill + shuffle · spill + talk + tasks) · noise

    serial   s₀                                              the driver: planning, committing the result (Amdahl)
    compute  W · (1 + codec) · (1 + gc) / (C · v)            parallel work; the codec and large heaps take processor time
    lumps    ⌈P / C⌉ · C / P                                 the last wave of tasks leaves cores idle (too few partitions)
    skew     1 + κ · √(C / P)                                the fewer partitions, the larger the largest one
    spill    1 + a · ln(1 + e^(b · (need / have − 1))) / b   memory cliff: flat below need = have, steep above
    shuffle  STAGES · V · ratio · (m − 1) / m / (m · B)      all-to-all: each node sends (m − 1)/m of its share over its own link
    talk     STAGES · (c₁ · log₂ m + c₂ · m)                 trees of broadcasts, and one connection per peer
    tasks    STAGES · P · (c₃ + c₄ · m)                      the driver starts tasks one by one and tracks P · m shuffle blocks

`need` is what an executor holds: its share of the cache, and the working sets of the tasks that run in it, each a stage's share of the
input over P. `have` is the part of its heap that Spark gives to storage and execution (0.6 by default). The terms for serial work, work
per machine, log m and m are those of Ernest (Venkataraman et al., NSDI 2016). Noise is log-normal and fixed per configuration and
seed: measuring a configuration again gives the same time, as in a recorded table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.demo.machines import MACHINES
from lynceus.executors.table import Measurements
from lynceus.models.seeds import generator
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.derived import Computed, Joined
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space

FloatArray = NDArray[np.float64]

INPUT_GB = 30.0
CACHED_GB = 50.0
"""What the job keeps in memory between stages."""
NODES = (2, 4, 6, 8, 12, 16)
STAGES = 6
SERIAL_S = 25.0
WORK_CORE_S = 10_000.0
"""Core-seconds of a core of speed 1."""
LEVEL_S = 0.8
"""Seconds per level of a broadcast tree."""
PEER_S = 0.8
"""Seconds per connected node and stage."""
TASK_S = 0.006
"""Seconds of the driver per task."""
BLOCK_S = 0.0008
"""Seconds of the driver per shuffle block, of which every task has one on every node."""
SKEW = 0.25
EXPANSION = 3.0
"""Gigabytes of objects in memory for a gigabyte of serialised input."""
HEAP_SHARE = 0.6
"""Spark's default `spark.memory.fraction`."""
SPILL_FACTOR = 5.0
SPILL_STEEPNESS = 12.0
NOISE = 0.04
"""Standard deviation of the logarithm of a run's time."""

DEADLINE_S = 480.0
BUDGET_USD = 16.0
TICK_S = 30.0


@dataclass(frozen=True)
class Job:
    """A problem and the running time of every configuration."""

    problem: Problem
    measured: Measurements
    seed: int

    @property
    def cost_usd(self) -> FloatArray:
        """Dollars of a full run, `[q]`."""
        seconds, price = self.measured.seconds, self.problem.price
        return self.problem.billing.charges(seconds, price)

    @property
    def optimum_usd(self) -> float:
        """Dollars per run of the cheapest configuration that meets the deadline."""
        return float(self.cost_usd[self.on_time].min())

    @property
    def optimum_row(self) -> int:
        """The row of that configuration."""
        return int(np.argmin(np.where(self.on_time, self.cost_usd, np.inf)))

    @property
    def on_time(self) -> NDArray[np.bool_]:
        """Which configurations meet the deadline, `[q]`."""
        return self.measured.seconds <= self.problem.deadline_s


def demo_job(seed: int = 0, budget_usd: float = BUDGET_USD, noise: float = NOISE) -> Job:
    """The job of the demo; `seed` fixes the noise of its runs.

    >>> job = demo_job()
    >>> len(job.problem.space), str(job.problem.constraints[0])
    (492, 'time <= 8m')
    """
    space = demo_space()
    normal = generator(seed, "demo", "noise").standard_normal(len(space))
    seconds = run_seconds(space) * np.exp(noise * normal)
    problem = Problem(space, constraints=(Constraint("time", DEADLINE_S),), budget=Budget(budget_usd))
    return Job(problem, Measurements(seconds, progress=_progress(seconds), tick_s=TICK_S), seed)


def demo_space() -> Space:
    """Machine type and count, memory per executor, shuffle partitions, codec; without impossible combinations."""
    return Space.build(
        [
            Categorical("machine", tuple(MACHINES)),
            Ordinal("nodes", NODES),
            Ordinal("executor_gb", (4, 10)),
            Ordinal("partitions", (64, 256, 1024)),
            Categorical("codec", ("lz4", "zstd")),
        ],
        derived=[
            Joined(
                "machine",
                [{"machine": name, **one.columns()} for name, one in MACHINES.items()],
                feature=["vcpus", "ram_gb"],
            ),
            Computed("cores", "nodes * vcpus"),
        ],
        forbid=["executor_gb > 0.9 * ram_gb", "cores > 128"],
        price="nodes * usd_per_hour",
    )


def run_seconds(space: Space) -> FloatArray:
    """Noise-free seconds of every configuration, `[q]`."""
    nodes, partitions, executor_gb, vcpus, ram_gb, speed, link = (
        np.asarray(space.column(name), float)
        for name in ("nodes", "partitions", "executor_gb", "vcpus", "ram_gb", "speed", "network_gb_per_s")
    )
    zstd = np.asarray(space.column("codec")) == "zstd"
    per_node = np.clip(np.floor(0.9 * ram_gb / executor_gb), 1, vcpus)
    cores = nodes * vcpus
    compute = WORK_CORE_S * (1 + 0.07 * zstd) * (1 + garbage(executor_gb)) / (cores * speed)
    lumps = np.ceil(partitions / cores) * cores / partitions
    skew = 1 + SKEW * np.sqrt(cores / partitions)
    spilling = spill(held_gb(nodes * per_node, vcpus / per_node, partitions), HEAP_SHARE * executor_gb)
    volume = INPUT_GB * np.where(zstd, 0.55, 1.0)
    shuffle = STAGES * volume * (nodes - 1) / nodes / (nodes * link)
    talk = STAGES * (LEVEL_S * np.log2(nodes) + PEER_S * nodes)
    tasks = STAGES * partitions * (TASK_S + BLOCK_S * nodes)
    seconds: FloatArray = SERIAL_S + compute * lumps * skew * spilling + shuffle * spilling + talk + tasks
    return seconds


def held_gb(executors: FloatArray, tasks_at_once: FloatArray, partitions: FloatArray) -> FloatArray:
    """Gigabytes that one executor has to hold: its share of the cache, and the working sets of its running tasks."""
    return CACHED_GB / executors + tasks_at_once * EXPANSION * INPUT_GB / STAGES / partitions


def spill(need_gb: FloatArray, have_gb: FloatArray) -> FloatArray:
    """Slowdown of work that does not fit into memory: 1 below the cliff, then a times the overflow, with a rounded edge.

    >>> spill(np.array([0.5, 1.0, 3.0]), np.array([1.0, 1.0, 1.0])).round(2).tolist()
    [1.0, 1.29, 11.0]
    """
    overflow = np.logaddexp(0.0, SPILL_STEEPNESS * (need_gb / have_gb - 1)) / SPILL_STEEPNESS
    return np.asarray(1 + SPILL_FACTOR * overflow)


def garbage(executor_gb: FloatArray) -> FloatArray:
    """Share of time that large heaps spend on garbage collection."""
    return 0.015 * np.maximum(executor_gb - 4.0, 0.0)


def _progress(seconds: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Fraction done at every tick: fast at first, saturating, 1 at the first tick after the end."""
    return tuple(tuple(done(np.arange(1, np.ceil(total / TICK_S) + 1) * TICK_S / total).tolist()) for total in seconds)


def done(share_of_time: FloatArray, bend: float = 1.6) -> FloatArray:
    """Fraction of the work done after a share of the time, (1 − e^(−bend·u)) / (1 − e^(−bend)) with u at most 1."""
    return np.asarray(-np.expm1(-bend * np.minimum(share_of_time, 1.0)) / -np.expm1(-bend))
