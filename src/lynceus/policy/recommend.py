"""The answer of an exploration: a configuration in the user's words, and how sure we are of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.history import End, History
from lynceus.policy.answer import answering, predicted_value
from lynceus.policy.policy import Policy
from lynceus.problem import Problem
from lynceus.situation import Belief, Situation, feasible_runs


@dataclass(frozen=True)
class Recommendation:
    """What to run from now on."""

    row: int
    params: Mapping[str, object]
    measured: bool
    """Whether this configuration has itself been run to its end within the limits; otherwise the numbers are predictions."""
    value: float
    """The goal, in its own unit and sign (dollars, seconds, or the metric)."""
    seconds: float
    """Time of a run."""
    cost_usd: float
    """Dollars of a production run."""
    probability: float
    """Chance that a run keeps every limit, as the model sees it; NaN when there is no model."""
    spent_usd: float
    """What the exploration has cost."""
    trials: int
    stopped_early: int


def recommend(problem: Problem, policy: Policy, history: History, *, seed: int) -> Recommendation | None:
    """The policy's answer after `history`; nothing when no configuration is known to keep the limits."""
    situation = Situation.present(problem, history)
    row = policy.answer(situation, policy.surrogate, seed)
    if row is None:
        return None
    model = policy.surrogate
    belief = answering(model)(situation, seed) if model is not None and len(situation.rows) else None
    measured = [value for seen, value in feasible_runs(problem, history) if seen == row]
    if measured:
        value = min(measured)
        seconds = float(
            np.median(
                [seen.outcome.seconds for seen in history if seen.row == row and seen.outcome.end is End.FINISHED]
            )
        )
    elif belief is None:
        raise ValueError(f"row {row} was recommended without a measurement and without a model")
    else:
        value = float(predicted_value(belief, situation)[0, row])
        seconds = predicted_seconds(problem, belief, row)
    return Recommendation(
        row=row,
        params=problem.space.point(row),
        measured=bool(measured),
        value=-value if problem.goal.maximise else value,
        seconds=seconds,
        cost_usd=problem.cost(row, seconds),
        probability=math.nan if belief is None else float(belief.feasible(problem)[0, row]),
        spent_usd=sum(seen.outcome.charged_usd for seen in history),
        trials=len(history),
        stopped_early=sum(seen.outcome.end is End.CAPPED for seen in history),
    )


def predicted_seconds(problem: Problem, belief: Belief, row: int) -> float:
    """The expected time of a row, through the tariff when cost is what is modelled."""
    expected = float(belief.run().expectation()[0, row])
    if belief.form == "cost":
        expected = float(problem.seconds_at(np.asarray(expected), np.asarray(row)))
    return max(expected, 0.0)
