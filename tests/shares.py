"""A small training job with a data fraction: runs on more data cost more and are more accurate."""

from __future__ import annotations

import numpy as np

from lynceus.executors.table import Measurements
from lynceus.models.seeds import generator
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.testing.job import SmallJob

SHARES = (0.05, 0.2, 1.0)


def small_share_job(
    *constraints: str,
    objective: str = "maximize accuracy",
    budget: Budget | None = None,
    billing: Billing | None = None,
    seed: int = 0,
) -> SmallJob:
    """Two machines × three rates × two depths × three shares; the column `share` is not yet declared a fraction."""
    space = Space.build(
        [
            Categorical("vm", ("small", "large")),
            Ordinal("rate", (0.001, 0.01, 0.1)),
            Ordinal("depth", (2, 6)),
            Ordinal("share", SHARES),
        ],
        price=3.6,
    )
    rng = generator(seed, "shares")
    large = space.column("vm") == "large"
    rate, depth = np.log10(space.column("rate").astype(float)), space.column("depth").astype(float)
    share = space.column("share").astype(float)
    seconds = 20 + 400 * share**0.9 * depth / 6 / np.where(large, 1.8, 1.0)
    best = 0.97 - 0.12 * np.square(rate + 2) - 0.03 * (depth == 2)
    accuracy = best - 0.12 * np.square(1 - share) + rng.normal(0, 0.004, len(space))
    parsed = tuple(Constraint.parse(constraint) for constraint in (constraints or ("cost <= $0.30",)))
    problem = Problem(space, Objective.parse(objective), parsed, budget or Budget(), billing or Billing())
    rows = tuple(int(row) for row in rng.permutation(len(space)))
    return SmallJob(problem, Measurements(seconds, {"accuracy": accuracy}), rows)
