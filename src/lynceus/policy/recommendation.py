"""The recommendation of a study: a configuration, what a run of it costs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.state import State, feasible_runs
from lynceus.policy.answer import BestBelieved
from lynceus.policy.beliefs import Believed, answering, believed_best
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
    cost_interval_usd: tuple[float, float] | None = None
    """Where the mean cost of a run lies with a probability of 80 %; None where runs do not differ, or nothing is believed of it."""
    noise: float | None = None
    """Expected standard deviation of the logarithm of a run's time: 0.1 means that runs differ by about 10 %; None as above."""


def recommend(problem: Problem, policy: Policy, observations: Observations, *, seed: int) -> Recommendation | None:
    """The policy's answer after `observations`; None when no configuration is known to keep the constraints."""
    state = State.present(problem, observations)
    best = None
    if isinstance(policy.answer, BestBelieved) and not problem.deterministic:
        best = believed_best(state, policy.surrogate, policy.answer.noise, seed)
    row = policy.answer(state, policy.surrogate, seed) if best is None else best.row
    if row is None:
        return None
    found = _seen_or_predicted(state, policy, seed, row) if best is None else _believed(problem, best)
    return replace(
        found,
        value=-found.value if problem.objective.maximise else found.value,
        spent_usd=sum(seen.outcome.charged_usd for seen in observations),
        trials=len(observations),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in observations),
    )


def _believed(problem: Problem, best: Believed) -> Recommendation:
    """A row with a finished run: what is believed of it after all runs."""
    belief, row = best.belief, best.row
    return Recommendation(
        row=row,
        params=problem.space.point(row),
        measured=True,
        value=best.value,
        seconds=belief.seconds,
        cost_usd=problem.cost(row, belief.seconds),
        probability=best.chance,
        spent_usd=0.0,
        trials=0,
        stopped_early=0,
        cost_interval_usd=(problem.cost(row, belief.low_s), problem.cost(row, belief.high_s)),
        noise=belief.spread,
    )


def _seen_or_predicted(state: State, policy: Policy, seed: int, row: int) -> Recommendation:
    """A row by its best run, or by a prediction where it has none."""
    problem, observations, model = state.problem, state.observations, policy.surrogate
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
    probability = math.nan if prediction is None else float(prediction.feasible(problem)[0, row])
    return Recommendation(
        row=row,
        params=problem.space.point(row),
        measured=bool(measured),
        value=value,
        seconds=seconds,
        cost_usd=problem.cost(row, seconds),
        probability=1.0 if measured and problem.deterministic else probability,
        spent_usd=0.0,
        trials=0,
        stopped_early=0,
    )
