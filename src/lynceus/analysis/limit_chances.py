"""Every limit of a study by itself: how probable the recommended configuration meets it, and what its runs told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.policy.recommendation import Recommendation
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observation


@dataclass(frozen=True)
class LimitChance:
    """One limit, for the configuration that is recommended."""

    constraint: str
    """As users write it."""
    metric: str
    """`time` (seconds), `cost` (dollars), or a reported metric."""
    bound: float
    unit: str
    """The declared unit of a metric; empty where there is none."""
    measured: float
    """The median over its finished runs; NaN before the first."""
    chance: float
    """P(a run meets this limit alone); NaN without a model."""


def limit_chances(problem: Problem, found: Recommendation, finished: Sequence[Observation]) -> tuple[LimitChance, ...]:
    """One value per constraint, in the order of the problem; `finished` are the runs of the recommended configuration."""
    chances = found.chances or (math.nan,) * len(problem.constraints)
    return tuple(
        LimitChance(str(one), one.metric, one.bound, one.unit, _measured(problem, one, finished), chance)
        for one, chance in zip(problem.constraints, chances, strict=True)
    )


def _measured(problem: Problem, constraint: Constraint, finished: Sequence[Observation]) -> float:
    values = [
        {"time": seen.outcome.seconds, "cost": problem.cost(seen.row, seen.outcome.seconds)}.get(
            constraint.metric, seen.outcome.metrics.get(constraint.metric, math.nan)
        )
        for seen in finished
    ]
    told = [value for value in values if not math.isnan(value)]
    return float(np.median(told)) if told else math.nan
