"""Imagined outcomes of a run: a few weighted points of the model's prediction, turned into what the study would observe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.models.distribution import Normal
from lynceus.models.state import Form, State, warm_saving
from lynceus.policy.interfaces import Quadrature
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Imagined:
    """k outcomes for each of r rows."""

    target: FloatArray
    """Training targets in the model's units `[r, k, m]`."""
    weight: FloatArray
    """`[r, k]`; 0 where the outcome is impossible (no cost is negative)."""
    charge: FloatArray
    """Dollars `[r, k]`."""
    value: FloatArray
    """Value of the objective, NaN where a constraint is violated or the run is stopped `[r, k]`."""


@dataclass(frozen=True, slots=True)
class GaussHermite:
    """A product rule over all modelled targets: `points` for the cost × `points` for every metric."""

    points: int = 3

    def __post_init__(self) -> None:
        if self.points < 1:
            raise ValueError(f"a quadrature needs at least 1 point, got {self.points}")

    def __call__(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes `[r, k, m]` and weights `[k]` for moments `[r, m]` in the model's units, k = points^m."""
        return product_rule(*Normal(mean, std).nodes(self.points))


def product_rule(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes `[r, p^m, m]` and weights `[p^m]` of all combinations of p values of m targets, `values [r, m, p]`, `weights [p]`."""
    r, m, points = values.shape
    index = np.stack(np.meshgrid(*[np.arange(points)] * m, indexing="ij"), axis=-1).reshape(-1, m)
    nodes = np.take_along_axis(values, np.broadcast_to(index.T[None], (r, m, len(index))), axis=2)
    return np.swapaxes(nodes, 1, 2), np.prod(weights[index], axis=1)


def imagine(
    state: State,
    form: Form,
    rows: IntArray,
    moments: tuple[FloatArray, FloatArray],
    quadrature: Quadrature,
    *,
    capped: bool,
    logs: tuple[bool, ...] = (),
) -> Imagined:
    """Outcomes of running `rows [r]` in states (r of them, or one for all), given moments `[r, m]`; `logs` as in a prediction.

    With `capped`, an imagined run is stopped at its timeout: it is charged until then and cannot be a new best.
    """
    problem = state.problem
    target, weights = quadrature(*moments)
    weight = np.broadcast_to(weights, target.shape[:2]).copy()
    own, ceiling_s = rows[:, None], problem.ceiling_s[rows][:, None]
    if form == "cost":
        cost = target[:, :, 0]
        seconds = np.maximum(problem.run_costs.seconds_at(cost, own), 0.0)
        weight[cost <= 0] = 0.0
        feasible = cost <= problem.ceiling_usd[rows][:, None]
    else:
        # Larger exponents overflow a float; such a run is far over every timeout anyway.
        seconds = np.exp(np.minimum(target[:, :, 0], 700.0))
        cost = problem.run_costs.of(seconds, own)
        feasible = seconds <= ceiling_s
    told = {"time": seconds, "cost": cost, **_metrics(problem, target, logs)}
    value = told[problem.kind] if problem.kind != "metric" else _reported(problem, told, own)
    for constraint in problem.metric_constraints:
        reported = told[constraint.metric]
        feasible = feasible & (reported >= constraint.bound if constraint.at_least else reported <= constraint.bound)
    charge = cost
    if capped:
        timeouts_s = state.timeout_s_of(rows)[:, None]
        charge = np.minimum(cost, problem.run_costs.of(np.maximum(timeouts_s, 0.0), own))
        feasible = feasible & (seconds <= timeouts_s)
    charge = np.maximum(charge - np.reshape(warm_saving(state, rows), (-1, 1)), 0.0)
    if problem.answerable is not None:
        feasible = feasible & problem.answerable[rows][:, None]
    return Imagined(target, weight, charge, np.where(feasible, value, np.nan))


def _metrics(problem: Problem, target: FloatArray, logs: tuple[bool, ...]) -> dict[str, FloatArray]:
    """Imagined metrics `[r, k]` in their own units, by name."""
    return {
        name: np.exp(np.minimum(target[:, :, place], 700.0)) if logs and logs[place - 1] else target[:, :, place]
        for place, name in enumerate(problem.metrics, start=1)
    }


def _reported(problem: Problem, told: dict[str, FloatArray], rows: IntArray) -> FloatArray:
    """The objective that is a metric or a formula `[r, k]`, smaller is better."""
    value = told[problem.objective.metric] if problem.goal.formula is None else problem.goal.formula.values(told, rows)
    return problem.objective.sign * value
