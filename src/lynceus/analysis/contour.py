"""The predicted objective over two parameters: where cheap configurations are, and whether they meet the constraints."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.analysis.importance import first_order_shares
from lynceus.analysis.predictions import explaining_policy, predict, predicted_objective
from lynceus.analysis.study_context import StudyContext
from lynceus.errors import InputError, did_you_mean
from lynceus.problem.problem import Problem

MOST_STEPS = 40
"""Steps of an axis; neighbouring values of a parameter with more share a step."""


@dataclass(frozen=True)
class ContourAxis:
    """A parameter as an axis."""

    parameter: str
    steps: tuple[tuple[object, ...], ...]
    """The values of each step, in order; most steps have one value."""


@dataclass(frozen=True)
class Contour:
    """The best that the model predicts for each pair of values of two parameters, whatever the other parameters are."""

    study: str
    settled: int
    """Settled trials that it rests on."""
    parameters: tuple[str, ...]
    """Parameters that can be an axis, most important first."""
    x: ContourAxis | None
    """None, like the next field, while there are too few runs, or fewer than two parameters with several values."""
    y: ContourAxis | None
    value: list[list[float]]
    """`[y][x]`: the best predicted objective of a configuration with these values; NaN where there is none."""
    probability: list[list[float]]
    """`[y][x]`: the chance that a run of that configuration meets every constraint."""


def contour(context: StudyContext, x: str | None = None, y: str | None = None) -> Contour:
    """The contour over two parameters; by default the two most important ones."""
    study = context.study
    problem = study.problem
    own = [one.name for one in problem.space.parameters if len(one.values) > 1]
    for name in (x, y):
        if name is not None and name not in own:
            raise InputError(
                f"contour: {name!r} is no parameter with several values; choose from: {', '.join(own) or 'none'}."
                + did_you_mean(name, own)
            )
    if x is not None and x == y:
        raise InputError(f"contour: both axes are {x!r}; choose two different parameters.")
    prediction = predict(problem, explaining_policy(study), context.known, study.seed)
    if prediction is None or len(own) < 2:
        return Contour(study.name, len(study.observations), tuple(own), None, None, [], [])
    values = predicted_objective(prediction, problem)
    ranked = [one.parameter for one in first_order_shares(problem, values) if one.parameter in own]
    across = x if x is not None else next(name for name in ranked if name != y)
    up = y if y is not None else next(name for name in ranked if name != across)
    first, second = _axis(problem, across), _axis(problem, up)
    best = _best_rows(problem, values, (first, second))
    chance = np.asarray(prediction.feasible(problem)[0], dtype=np.float64)
    return Contour(
        study.name,
        len(study.observations),
        tuple(ranked),
        first,
        second,
        _table(best, values),
        _table(best, chance),
    )


def _axis(problem: Problem, name: str) -> ContourAxis:
    values = next(one.values for one in problem.space.parameters if one.name == name)
    steps = min(len(values), MOST_STEPS)
    edges = [round(step * len(values) / steps) for step in range(steps + 1)]
    return ContourAxis(name, tuple(tuple(values[low:high]) for low, high in itertools.pairwise(edges)))


def _steps_of(problem: Problem, axis: ContourAxis) -> NDArray[np.int64]:
    """The step of every configuration on an axis `[q]`; -1 where its parameter is inactive."""
    place = [one.name for one in problem.space.parameters].index(axis.parameter)
    step_of_code = np.repeat(np.arange(len(axis.steps)), [len(step) for step in axis.steps])
    codes = problem.space.codes[:, place]
    return np.where(codes < 0, -1, step_of_code[codes])


def _best_rows(
    problem: Problem, values: NDArray[np.float64], axes: tuple[ContourAxis, ContourAxis]
) -> NDArray[np.int64]:
    """The configuration with the best value among those that may be recommended, for each pair of steps `[y, x]`; -1 for none."""
    across, up = (_steps_of(problem, axis) for axis in axes)
    allowed = (across >= 0) & (up >= 0)
    if problem.answerable is not None:
        allowed &= problem.answerable
    rows = np.flatnonzero(allowed)
    worst_first = rows[np.argsort(-problem.objective.sign * values[rows], kind="stable")]
    best = np.full((len(axes[1].steps), len(axes[0].steps)), -1, dtype=np.int64)
    best[up[worst_first], across[worst_first]] = worst_first  # the last one written is the best
    return best


def _table(best: NDArray[np.int64], values: NDArray[np.float64]) -> list[list[float]]:
    return [[math.nan if row < 0 else float(values[row]) for row in line] for line in best.tolist()]
