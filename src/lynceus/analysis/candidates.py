"""The open configurations that are most promising by the model: what the next suggestion was preferred to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.analysis.predictions import FEWEST_RUNS, predicted_times
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.policy import Policy
from lynceus.policy.reopened_rows import with_reopened_rows
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observations
from lynceus.trial.record import Record


@dataclass(frozen=True)
class Candidate:
    """What the model predicts of an open configuration."""

    row: int
    params: Mapping[str, object]
    gain: float
    """Expected improvement over the incumbent under the constraints, in the unit of the objective."""
    charge_usd: float
    """Dollars that a run is expected to be charged when it is stopped as soon as it can no longer win."""
    gain_per_usd: float
    probability: float
    """Chance to meet every constraint."""
    runtime_s: float
    """Expected time."""


def candidates(
    problem: Problem,
    policy: Policy,
    observations: Observations,
    record: Record | None = None,
    *,
    seed: int,
    most: int = 5,
) -> list[Candidate]:
    """The open configurations with the largest expected improvement per dollar; empty while there are too few runs.

    `record` tells of runs that are pending, and of limits that have changed.
    """
    state = State.present(problem, observations, () if record is None else record.pending)
    state = with_reopened_rows(state, policy, () if record is None else record.limit_changes)
    if len(state.rows) < FEWEST_RUNS:
        return []
    prediction = (policy.surrogate if policy.surrogate is not None else Trees())(state, seed)
    gain = ConstrainedImprovement()(prediction, state)[0]
    charge = np.maximum(np.broadcast_to(prediction.charge(state, state.timeouts_s()), (1, len(gain)))[0], 1e-12)
    probability, seconds = prediction.feasible(problem)[0], predicted_times(prediction, problem)
    per_usd = np.where(state.open, gain / charge, -np.inf)
    best = [int(row) for row in np.argsort(-per_usd, kind="stable")[:most] if state.open[row]]
    return [
        Candidate(
            row,
            problem.space.point(row),
            float(gain[row]),
            float(charge[row]),
            float(per_usd[row]),
            float(probability[row]),
            float(seconds[row]),
        )
        for row in best
    ]
