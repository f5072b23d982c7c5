"""A small made-up training job with a data fraction: more data cost more and teach more."""

from __future__ import annotations

import numpy as np

from lynceus.executor.table import Measurements
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.randomness import generator
from lynceus.space import Categorical, Ordinal, Space
from lynceus.testing import SmallJob

SHARES = (0.05, 0.2, 1.0)


def small_share_job(
    *limits: str,
    goal: str = "maximize accuracy",
    budget: Budget | None = None,
    tariff: Tariff | None = None,
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
    kept = tuple(Limit.parse(limit) for limit in (limits or ("cost <= $0.30",)))
    problem = Problem(space, Goal.parse(goal), kept, budget or Budget(), tariff or Tariff())
    rows = tuple(int(row) for row in rng.permutation(len(space)))
    return SmallJob(problem, Measurements(seconds, {"accuracy": accuracy}), rows)
