"""The recommendation of a study: a configuration, what a run of it costs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.run_noise import RunNoise
from lynceus.models.state import State, feasible_runs
from lynceus.models.trees import Trees
from lynceus.policy.answer import BestBelieved, BestSeen, confident
from lynceus.policy.beliefs import Believed, answering, believed_best, believed_of
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations

MANY_RUNS = 1000
"""Runs above which regression trees answer, whatever model the policy has: a Gaussian process would take minutes."""


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
    reaches_confidence: bool = True
    """Whether it keeps every constraint with the confidence that it demands, and all of them more often than not, by all that is believed;
    otherwise no configuration does, and this is the nearest one."""
    chances: tuple[float, ...] = ()
    """Probability that a run keeps each constraint alone, in the order of the problem; empty where nothing is believed of them."""
    noise: float | None = None
    """Expected standard deviation of the logarithm of a run's time: 0.1 means that runs differ by about 10 %; None as above."""


def recommend(problem: Problem, policy: Policy, observations: Observations, *, seed: int) -> Recommendation | None:
    """The policy's answer after `observations`; None when no configuration is known to keep the constraints."""
    found = best_configuration(problem, policy, observations, seed=seed)
    if found is None or not math.isnan(found.probability) or policy.surrogate is None:
        return found
    state = State.present(problem, observations)
    if not len(state.rows):
        return found
    prediction = answering(policy.surrogate)(state, seed)
    chances = tuple(float(prediction.meets(each, problem)[0, found.row]) for each in problem.constraints)
    return replace(found, probability=float(prediction.feasible(problem)[0, found.row]), chances=chances)


def best_configuration(
    problem: Problem, policy: Policy, observations: Observations, *, seed: int
) -> Recommendation | None:
    """The answer without the probability where the choice does not need it: quick also for thousands of trials.

    This is the one place that decides which configuration is the best one. Every command, property and page shows it.
    """
    if isinstance(policy.answer, BestBelieved) and not problem.deterministic:
        best = believed_best(problem, observations, policy.surrogate, policy.answer.noise, seed)
        found = None if best is None else _believed(problem, best)
    else:
        state = State.present(problem, observations)
        row = policy.answer(state, policy.surrogate, seed)
        found = None if row is None else _seen_or_predicted(state, policy, seed, row)
    if found is None:
        return None
    return replace(
        found,
        value=-found.value if problem.objective.maximise else found.value,
        spent_usd=sum(seen.outcome.charged_usd for seen in observations),
        trials=len(observations),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in observations),
    )


def runs_decide(problem: Problem, policy: Policy) -> bool:
    """Whether the answer of a policy is the incumbent, the best run by its value alone: then it needs no model, and no belief."""
    answer = policy.answer
    seen = isinstance(answer, BestSeen) or (isinstance(answer, BestBelieved) and problem.deterministic)
    by_value = policy.surrogate is None and problem.deterministic
    return seen and (by_value or all(each.confidence is None for each in problem.constraints))


def answering_policy(policy: Policy, observations: Observations) -> Policy:
    """The policy that answers questions: its own, with a quicker model when there are many runs."""
    if policy.surrogate is None or len(observations) <= MANY_RUNS:
        return policy
    return replace(policy, surrogate=Trees())


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
        reaches_confidence=best.admissible,
        cost_interval_usd=(problem.cost(row, belief.low_s), problem.cost(row, belief.high_s)),
        noise=belief.spread,
        chances=best.chances,
    )


def _seen_or_predicted(state: State, policy: Policy, seed: int, row: int) -> Recommendation:
    """A row by its best run, or by a prediction where it has none."""
    problem, observations, model = state.problem, state.observations, policy.surrogate
    measured = [value for seen, value in feasible_runs(problem, observations) if seen == row]
    if measured:
        value = min(measured)
        seconds = float(
            np.median(
                [seen.outcome.seconds for seen in observations if seen.row == row and seen.outcome.end is End.FINISHED]
            )
        )
    elif model is None or not len(state.rows):
        raise ValueError(f"row {row} was recommended without a measurement and without a model")
    else:
        prediction = answering(model)(state, seed)
        value = float(prediction.objective(problem)[0, row])
        seconds = float(prediction.seconds(problem)[0, row])
    sure, chance = _sure(state, policy, seed, row)
    return Recommendation(
        row=row,
        params=problem.space.point(row),
        measured=bool(measured),
        value=value,
        seconds=seconds,
        cost_usd=problem.cost(row, seconds),
        probability=1.0 if measured and problem.deterministic else chance,
        spent_usd=0.0,
        trials=0,
        stopped_early=0,
        reaches_confidence=sure or (bool(measured) and problem.deterministic),
        chances=(1.0,) * len(problem.constraints) if measured and problem.deterministic else (),
    )


def _sure(state: State, policy: Policy, seed: int, row: int) -> tuple[bool, float]:
    """Whether a row keeps the constraints with the confidence that they demand, and the chance; NaN where no confidence is demanded.

    Without a model, what is believed after its runs tells it.
    """
    problem, model = state.problem, policy.surrogate
    if problem.deterministic or all(constraint.confidence is None for constraint in problem.constraints):
        return True, math.nan
    if model is not None:
        prediction = answering(model)(state, seed)
        return bool(confident(prediction, problem)[row]), float(prediction.feasible(problem)[0, row])
    best = believed_of(row, problem, state.observations, RunNoise(), seed)
    return best.admissible, best.chance
