"""What is believed of configurations that ran, once runs may differ: their cost, and the chance that a run keeps the limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from lynceus.models.interfaces import SupportsAccuratePrediction, Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.run_noise import Belief, RunNoise, Runs, runs_by_row
from lynceus.models.state import State, feasible_runs
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observations

_MOST = 8
"""Configurations that are looked at closely; each needs a fit of the model without it."""
_MANY = 200
"""With more observations than this, the runs of a configuration speak for themselves: fits would take long, and add little."""
_RIVALS = 3
"""Admissible configurations among which the best is chosen: those behind them looked worse at a first glance."""


@dataclass(frozen=True, eq=False)
class Believed:
    """A configuration that ran, with what is believed of it."""

    row: int
    belief: Belief
    value: float
    """Expected objective of a run, smaller is better."""
    chance: float
    """P(a run keeps every constraint)."""
    admissible: bool
    """Whether every constraint is kept with the confidence that it demands, and together more often than not."""


def believed_best(state: State, surrogate: Surrogate | None, noise: RunNoise, seed: int) -> Believed | None:
    """The best configuration with a finished run that kept every constraint; None while there is none.

    If none is sure enough of the constraints, the one that most probably keeps them.
    """
    found: list[Believed] = []
    for one in _by_first_glance(state, surrogate, noise, seed):
        found.append(one)
        if sum(each.admissible for each in found) == _RIVALS:
            break
    admissible = [one for one in found if one.admissible]
    if admissible:
        return min(admissible, key=lambda one: one.value)
    return max(found, key=lambda one: one.chance, default=None)


def believed(state: State, surrogate: Surrogate | None, noise: RunNoise, seed: int, row: int) -> Believed:
    """What is believed of one configuration with a finished run."""
    problem, runs = state.problem, runs_by_row(state.observations)
    others = [each for other, each in runs.items() if other != row]
    belief = noise.belief(runs[row], others, _predicted(state, surrogate, seed, row))
    prediction = None
    if problem.metric_constraints and surrogate is not None:
        prediction = answering(surrogate)(state, seed)
    chances = [_chance(problem, constraint, belief, row, prediction) for constraint in problem.constraints]
    demanded = [constraint.confidence or 0.0 for constraint in problem.constraints]
    together = belief.chance(float(problem.ceiling_s[row]))
    for constraint, chance in zip(problem.constraints, chances, strict=True):
        together *= chance if constraint.metric not in ("time", "cost") else 1.0
    admissible = together >= 0.5 and all(chance >= least for chance, least in zip(chances, demanded, strict=True))
    return Believed(row, belief, _value(problem, state, row, belief), together, admissible)


def with_believed_incumbent(state: State, best: Believed | None) -> State:
    """The state in which the incumbent's value is the one that is believed, and timeouts have the margin that the noise demands.

    Without noise both are as before. While no configuration is sure enough of the constraints, there is no incumbent.
    """
    if best is None:
        return state
    value = best.value if best.admissible else math.nan
    return replace(state, best=np.array([value]), margin=math.exp(best.belief.spread))


def noise_was_seen(observations: Observations) -> bool:
    """Whether a configuration ran more than once, so that the noise is not only a guess."""
    return any(len(runs) > 1 and runs.finished for runs in runs_by_row(observations).values())


def cautious(problem: Problem, noise: RunNoise, observations: Observations) -> Problem:
    """The problem that a search solves: limits on time and cost that must hold with a confidence are tighter by what the noise demands.

    A configuration keeps t <= L with probability p if its typical time is at most L · exp(−z(p) σ).
    """
    if not any(each.confidence is not None and each.metric in ("time", "cost") for each in problem.constraints):
        return problem
    spread = noise.spread(runs_by_row(observations).values())
    return problem.with_constraints(
        replace(each, bound=each.bound * math.exp(-max(float(ndtri(each.confidence)), 0.0) * spread))
        if each.confidence is not None and each.metric in ("time", "cost")
        else each
        for each in problem.constraints
    )


def answering(surrogate: Surrogate) -> Surrogate:
    """The model for an answer: a slower, more accurate one where the surrogate offers it."""
    return surrogate.accurate() if isinstance(surrogate, SupportsAccuratePrediction) else surrogate


def _by_first_glance(state: State, surrogate: Surrogate | None, noise: RunNoise, seed: int) -> Iterator[Believed]:
    """Configurations that kept every constraint once, in the order of the mean of their runs."""
    problem, runs = state.problem, runs_by_row(state.observations)
    seen: dict[int, float] = {}
    for row, value in feasible_runs(problem, state.observations):
        seen[row] = value if problem.kind == "metric" else problem.value(row, _typical_s(runs[row]), {})
    for row in sorted(seen, key=lambda each: seen[each])[:_MOST]:
        yield believed(state, surrogate, noise, seed, row)


def _typical_s(runs: Runs) -> float:
    """The geometric mean of the runs; a stopped one counts with the time that it ran."""
    return float(np.exp(np.mean(np.log(np.maximum((*runs.finished, *runs.stopped), 1e-9)))))


def _predicted(state: State, surrogate: Surrogate | None, seed: int, row: int) -> tuple[float, float] | None:
    """Mean and std of ln seconds that the model predicts of a row from all others; None without a model of time."""
    others = State.present(state.problem, tuple(seen for seen in state.observations if seen.row != row))
    if surrogate is None or not 0 < len(others.rows) <= _MANY:
        return None
    prediction = surrogate(others, seed)
    if prediction.form != "log time":
        return None
    return float(prediction.mean[0, row, 0]), max(float(prediction.std[0, row, 0]), 1e-3)


def _chance(problem: Problem, constraint: Constraint, belief: Belief, row: int, prediction: Prediction | None) -> float:
    """P(a run keeps one constraint); metrics as the model predicts them, or as they were seen where there is none."""
    if constraint.metric == "time":
        return belief.chance(constraint.bound)
    if constraint.metric == "cost":
        return belief.chance(float(problem.run_costs.seconds_at(np.asarray(constraint.bound), np.asarray(row))))
    return 1.0 if prediction is None else float(prediction.meets(constraint, problem)[0, row])


def _value(problem: Problem, state: State, row: int, belief: Belief) -> float:
    if problem.kind != "metric":
        return problem.value(row, belief.seconds, {})
    return float(np.mean([value for seen, value in feasible_runs(problem, state.observations) if seen == row]))
