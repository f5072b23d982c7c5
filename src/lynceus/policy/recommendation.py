"""The recommendation of a study: a configuration, what a run of it costs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.models.state import State, feasible_runs
from lynceus.policy.answer import answering
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations


@dataclass(frozen=True)
class Recommendation:
    """What to run from now on."""

    row: int
    params: Mapping[str, object]
    measured: bool
    """Whether this configuration finished within the constraints; otherwise the numbers are predictions."""
    value: float
    """The objective, in its own unit and sign (dollars, seconds, or the metric)."""
    seconds: float
    """Time of a run."""
    cost_usd: float
    """Dollars of a production run."""
    probability: float
    """Predicted probability that a run keeps every constraint; NaN without a model."""
    spent_usd: float
    """What the search has cost."""
    trials: int
    stopped_early: int


def recommend(problem: Problem, policy: Policy, observations: Observations, *, seed: int) -> Recommendation | None:
    """The policy's answer after `observations`; None when no configuration is known to keep the constraints."""
    state = State.present(problem, observations)
    row = policy.answer(state, policy.surrogate, seed)
    if row is None:
        return None
    model = policy.surrogate
    prediction = answering(model)(state, seed) if model is not None and len(state.rows) else None
    measured = [value for seen, value in feasible_runs(problem, observations) if seen == row]
    if measured:
        value = min(measured)
        seconds = float(
            np.median(
                [seen.outcome.seconds for seen in observations if seen.row == row and seen.outcome.end is End.FINISHED]
            )
        )
    elif prediction is None:
        raise ValueError(f"row {row} was recommended without a measurement and without a model")
    else:
        value = float(prediction.objective(problem)[0, row])
        seconds = float(prediction.seconds(problem)[0, row])
    return Recommendation(
        row=row,
        params=problem.space.point(row),
        measured=bool(measured),
        value=-value if problem.objective.maximise else value,
        seconds=seconds,
        cost_usd=problem.cost(row, seconds),
        probability=math.nan if prediction is None else float(prediction.feasible(problem)[0, row]),
        spent_usd=sum(seen.outcome.charged_usd for seen in observations),
        trials=len(observations),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in observations),
    )
