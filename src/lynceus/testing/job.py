"""A small synthetic job: 24 configurations with times, an accuracy and progress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lynceus.executors.table import Measurements
from lynceus.models.seeds import generator
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget


@dataclass(frozen=True, eq=False)
class SmallJob:
    """A problem and its true measurements."""

    problem: Problem
    measured: Measurements
    """Time and metrics of every configuration."""
    order_of_runs: tuple[int, ...] = field(default=())
    """A fixed random order of all rows, for observations."""

    def finished(self, rows: Sequence[int]) -> Observations:
        """Observations in which these rows finished, one after the other."""
        return tuple(self.observation(number, row) for number, row in enumerate(rows))

    def observation(self, number: int, row: int) -> Observation:
        """One finished run, charged as one that boots."""
        seconds = float(self.measured.seconds[row])
        metrics = {name: float(values[row]) for name, values in self.measured.metrics.items()}
        order = Order(number, row, math.inf, 0.0, Plan(row, why="given"))
        return Observation(
            order,
            Outcome(End.FINISHED, seconds, self.problem.cost(row, seconds), metrics),
            TrainingTarget(seconds, metrics),
        )


def small_job(
    *constraints: str,
    objective: str = "cost",
    budget: Budget | None = None,
    billing: Billing | None = None,
    seed: int = 0,
) -> SmallJob:
    """Three machine types × four cluster sizes × two batch sizes; larger clusters are faster, with diminishing returns.

    >>> job = small_job("runtime <= 30m")
    >>> len(job.problem.space), job.problem.space.point(int(job.measured.seconds.argmin()))
    (24, {'vm': 'r', 'nodes': 8, 'batch': 64})
    """
    hourly = Mapped("usd", "vm", {"c": 0.17, "m": 0.20, "r": 0.31}, feature=False)
    space = Space.build(
        [Categorical("vm", ("c", "m", "r")), Ordinal("nodes", (1, 2, 4, 8)), Ordinal("batch", (16, 64))],
        derived=[hourly],
        price="usd * nodes",
    )
    rng = generator(seed, "small job")
    speed = np.array([{"c": 1.0, "m": 1.15, "r": 1.6}[str(vm)] for vm in space.column("vm")])
    nodes, batch = space.column("nodes").astype(float), space.column("batch").astype(float)
    noise = np.exp(rng.normal(0.0, 0.03, len(space)))
    seconds = (5400.0 / (speed * nodes**0.8) + 40.0 * nodes) * np.where(batch == 16, 1.3, 1.0) * noise
    accuracy = 0.92 - 0.002 * nodes - 0.0006 * batch + rng.normal(0.0, 0.004, len(space))
    problem = Problem(
        space,
        Objective.parse(objective),
        tuple(Constraint.parse(constraint) for constraint in constraints),
        budget or Budget(),
        billing or Billing(),
    )
    progress = tuple(_progress(total, target) for total, target in zip(seconds, accuracy, strict=True))
    measured = Measurements(seconds, {"accuracy": accuracy}, progress)
    return SmallJob(problem, measured, tuple(rng.permutation(len(space)).tolist()))


def _progress(total_s: float, target: float) -> tuple[float, ...]:
    """Accuracy at every 30 s: a straight line up to the target."""
    return tuple(target * 30.0 * (i + 1) / total_s for i in range(int(total_s // 30.0)))
