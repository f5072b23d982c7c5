"""What a joint prediction becomes after one more run: rank-one updates of its draws and covariances, without a new fit.

For a run of row r that gives y = μ(r) + z √v, v the variance of a measurement there, and with c = cov(·, r):

    f' = f + c (y - f(r) - ε) / v  in every draw (Matheron's rule),      cov' = cov - c cᵀ / v,

exact while the hyper-parameters stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.models.fabolas import FractionJointPrediction
from lynceus.models.gaussian.fraction_regression import FractionModel
from lynceus.models.prediction import Prediction
from lynceus.space.column import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class _Known:
    """A target before the run, at all rows `[q]`, the answers `[a]` and the rows of the runs to imagine `[m]`."""

    draws: FloatArray
    """`[count, a]`"""
    own_draws: FloatArray
    """At the runs to imagine, `[count, m]`."""
    covariance: FloatArray
    """`[q, a]`"""
    columns: FloatArray
    """Covariance with the runs to imagine, `[q, m]`."""
    mean: FloatArray
    """`[q]`"""
    measured: FloatArray
    """Variance of a measurement, `[q]`."""
    noise: FloatArray
    """The part of it that is noise, `[q]`."""


@dataclass(frozen=True, eq=False)
class ImaginedRuns:
    """Some rows whose runs are imagined, with everything that their outcomes change."""

    joint: FractionJointPrediction
    rows: IntArray
    """`[m]`"""
    known: Mapping[int, _Known]
    """By target: the objective, and every constrained one."""

    @classmethod
    def of(cls, joint: FractionJointPrediction, rows: IntArray, count: int) -> ImaginedRuns:
        """Prepare the runs of `rows`, with `count` draws."""
        named = dict.fromkeys((joint.objective_index, *joint.constrained_targets))
        models = {index: model for index in named if (model := joint.targets[index].model) is not None}
        return cls(joint, rows, {index: _known(joint, index, model, rows, count) for index, model in models.items()})

    def after(self, place: int, outcome: Mapping[int, float]) -> AfterRun:
        """The prediction after the run of `rows[place]`, whose result is `outcome` standard deviations off, by target."""
        updated = {index: _update(one, place, outcome.get(index, 0.0), self.rows) for index, one in self.known.items()}
        return AfterRun(self.joint, updated)


@dataclass(frozen=True, eq=False)
class _Updated:
    """A target after the run."""

    draws: FloatArray
    """`[count, a]`"""
    covariance: FloatArray
    """`[q, a]`"""
    measured: FloatArray
    """`[q]`"""
    noise: FloatArray
    """`[q]`"""


@dataclass(frozen=True, eq=False)
class AfterRun:
    """A joint prediction after one imagined run."""

    joint: FractionJointPrediction
    updated: Mapping[int, _Updated]

    @property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""
        return self.joint.answers

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Draws of the objective at the answers `[count, a]`, smaller is better; only for all answers and the prepared count."""
        own = self.updated.get(self.joint.objective_index)
        if own is None:
            return np.zeros((count, len(rows)))
        if len(rows) != len(self.answers) or count != len(own.draws):
            raise ValueError("after an imagined run, only the prepared draws at all answers are known")
        return self.joint.as_objective(own.draws, rows)

    def feasible_draws(self, count: int) -> BoolArray:
        """Whether the answers meet every constraint in each draw `[count, a]`."""
        feasible = np.ones((count, len(self.answers)), dtype=bool)
        for index in self.joint.constrained_targets:
            feasible &= self.joint.meets(index, self.updated[index].draws)
        return feasible

    def covariance(self, rows: IntArray) -> FloatArray:
        """Covariance of the objective at some rows with the objective at the answers `[r, a]`."""
        own = self.updated.get(self.joint.objective_index)
        return np.zeros((len(rows), len(self.answers))) if own is None else own.covariance[rows]

    def variance(self, rows: IntArray) -> FloatArray:
        """Variance of the objective at some rows `[r]`."""
        own = self.updated.get(self.joint.objective_index)
        return np.zeros(len(rows)) if own is None else own.measured[rows] - own.noise[rows]

    def measurement_variance(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the objective at some rows `[r]`."""
        own = self.updated.get(self.joint.objective_index)
        return np.full(len(rows), 1e-12) if own is None else own.measured[rows]

    def constrained(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Draws at the answers, covariance with them and variance of a measurement, of constrained quantities but the objective."""
        return [
            (one.draws, one.covariance[rows], one.measured[rows])
            for index, one in self.updated.items()
            if index != self.joint.objective_index
        ]

    def after(self, rows: IntArray) -> Prediction:
        """Not known: utilities that imagine a run themselves cannot be imagined one run later."""
        raise ValueError("a look-ahead of the information planner needs utilities that do not imagine runs themselves")


def _known(joint: FractionJointPrediction, index: int, model: FractionModel, rows: IntArray, count: int) -> _Known:
    everything = np.arange(len(joint.problem.space))
    drawn = joint.target_draws(index, np.concatenate([joint.answers, rows]), count)
    mean, std = model.moments()
    noise = model.noise(everything)
    return _Known(
        drawn[:, : len(joint.answers)],
        drawn[:, len(joint.answers) :],
        model.covariance(everything, joint.answers),
        model.covariance(everything, rows),
        mean,
        np.square(std) + noise,
        noise,
    )


def _update(one: _Known, place: int, z: float, rows: IntArray) -> _Updated:
    """The rank-one update by the run of `rows[place]`."""
    row, column = rows[place], one.columns[:, place]
    variance = max(float(one.measured[row]), 1e-300)
    # The same random numbers for all runs, so that they are compared under the same errors.
    errors = np.sqrt(one.noise[row]) * np.random.default_rng(0).standard_normal(len(one.draws))
    push = (one.mean[row] + z * np.sqrt(variance) - one.own_draws[:, place] - errors) / variance
    # The covariance with the answers at the run itself, from the same matrix as all others.
    shared = one.covariance[row]
    return _Updated(
        one.draws + np.outer(push, shared),
        one.covariance - np.outer(column / variance, shared),
        np.maximum(one.measured - np.square(column) / variance, one.noise),
        one.noise,
    )
