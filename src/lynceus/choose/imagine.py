"""Outcomes that a run might have: a few weighted points of the model's belief, turned into what the loop would see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lynceus.distribution import Normal
from lynceus.situation import FloatArray, Form, IntArray, Situation, warm_saving


@dataclass(frozen=True, eq=False, slots=True)
class Imagined:
    """k outcomes for each of r rows."""

    told: FloatArray
    """What the model would hear, in its own units `[r, k, m]`."""
    weight: FloatArray
    """`[r, k]`; 0 where the outcome is impossible (no cost is negative)."""
    charge: FloatArray
    """Dollars `[r, k]`."""
    value: FloatArray
    """Goal value, NaN where a limit would be broken or the run stopped `[r, k]`."""


@dataclass(frozen=True, slots=True)
class Quadrature:
    """A product rule over all modelled targets: `points` for the cost × `points` for every metric (Gauss–Hermite)."""

    points: int = 3
    rule: Literal["gauss-hermite", "authors"] = "gauss-hermite"
    """`authors` repeats the published program, whose nodes are divided by √π and whose weights sum to 1.772."""

    def __post_init__(self) -> None:
        if self.points < 1 or (self.rule == "authors" and self.points != 3):
            raise ValueError(
                f"{self.points} points with rule {self.rule!r}: use 1 or more, and 3 for the authors' rule"
            )

    def __call__(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes `[r, k, m]` and weights `[k]` for moments `[r, m]` in the model's units, k = points^m."""
        r, m = mean.shape
        belief = Normal(mean, std)
        values, weights = belief.authors_nodes() if self.rule == "authors" else belief.nodes(self.points)
        index = np.stack(np.meshgrid(*[np.arange(self.points)] * m, indexing="ij"), axis=-1).reshape(-1, m)
        nodes = np.take_along_axis(values, np.broadcast_to(index.T[None], (r, m, len(index))), axis=2)
        return np.swapaxes(nodes, 1, 2), np.prod(weights[index], axis=1)


def imagine(
    situation: Situation,
    form: Form,
    rows: IntArray,
    moments: tuple[FloatArray, FloatArray],
    quadrature: Quadrature,
    *,
    capped: bool,
) -> Imagined:
    """What running `rows [r]` may bring in situations (r of them, or one for all), given moments `[r, m]`.

    With `capped`, an imagined run is stopped where the timeout would stop it: it is charged its cap and brings no new best.
    """
    problem = situation.problem
    told, weights = quadrature(*moments)
    weight = np.broadcast_to(weights, told.shape[:2]).copy()
    own, ceiling_s = rows[:, None], problem.ceiling_s[rows][:, None]
    if form == "cost":
        cost = told[:, :, 0]
        seconds = np.maximum(problem.seconds_at(cost, own), 0.0)
        weight[cost <= 0] = 0.0
        kept = cost <= problem.ceiling_usd[rows][:, None]
    else:
        # Beyond e^700 seconds a float ends; such a run is far over every cap anyway.
        seconds = np.exp(np.minimum(told[:, :, 0], 700.0))
        cost = problem.costs(seconds, own)
        kept = seconds <= ceiling_s
    value = {"cost": cost, "time": seconds}.get(problem.kind)
    if value is None:
        reported = told[:, :, 1 + problem.metrics.index(problem.goal.metric)]
        value = -reported if problem.goal.maximise else reported
    for limit in problem.metric_limits:
        reported = told[:, :, 1 + problem.metrics.index(limit.metric)]
        kept = kept & (reported >= limit.bound if limit.at_least else reported <= limit.bound)
    charge = cost
    if capped:
        caps = situation.cap_s_of(rows)[:, None]
        charge = np.minimum(cost, problem.costs(np.maximum(caps, 0.0), own))
        kept = kept & (seconds <= caps)
    charge = np.maximum(charge - np.reshape(warm_saving(situation, rows), (-1, 1)), 0.0)
    if problem.answerable is not None:
        kept = kept & problem.answerable[rows][:, None]
    return Imagined(told, weight, charge, np.where(kept, value, np.nan))
