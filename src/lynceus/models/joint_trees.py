"""Trees with foresight: every tree is one joint draw of the table, and imagined runs are really refitted (TrimTuner)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lynceus.models.prediction import Prediction
from lynceus.models.seeds import derive
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.space.column import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class JointTrees:
    """Bagged trees whose disagreement, tree by tree, serves as a joint prediction.

    The program published with TrimTuner treats the rows as independent; here rows that share the leaves of most trees
    are correlated.
    """

    trees: Trees = field(
        default_factory=lambda: Trees(trees=20, target="log time", spread="total", no_more_than_samples=False)
    )

    def __call__(self, state: State, seed: int) -> Prediction:
        """μ and σ of every row in every state."""
        return self.trees(state, seed)

    def predict_jointly(self, state: State, seed: int) -> TreesJointPrediction:
        """The joint prediction in a single state."""
        if len(state) != 1:
            raise ValueError(f"a joint prediction needs one state, got {len(state)}")
        return TreesJointPrediction(self.trees, state, seed)


@dataclass(frozen=True, eq=False)
class TreesJointPrediction:
    """Single trees as draws; smaller values of the objective are better."""

    trees: Trees
    state: State
    seed: int

    @cached_property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""
        mask = self.state.problem.answerable
        return np.arange(len(self.state.open)) if mask is None else np.flatnonzero(mask)

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the objective `[count, r]`: the trees in turn, each with the spread of its leaves."""
        tree = np.arange(count) % len(self._objective)
        random = np.random.default_rng(derive(self.seed, "leaves", self.state.started))
        # One error per draw, not per row: the error of a leaf is the same for all its rows.
        error = random.standard_normal((count, 1))
        return np.asarray(self._objective[tree][:, rows] + error * np.sqrt(self._leaf[rows]))

    def feasible_draws(self, count: int) -> BoolArray:
        """Whether the answers meet every constraint in each draw `[count, a]`."""
        problem = self.state.problem
        mean, std = self._forest[:, self.answers], self._forest_std[:, self.answers]
        prediction = Prediction(self.trees.target, mean, std)
        ceiling = (problem.ceiling_usd if self.trees.target == "cost" else problem.ceiling_s)[self.answers]
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = ceiling if self.trees.target == "cost" else np.log(np.maximum(ceiling, 0.0))
        feasible = prediction.mean[:, :, 0] <= bound
        for constraint in problem.metric_constraints:
            value = prediction.mean[:, :, 1 + problem.metrics.index(constraint.metric)]
            feasible &= value >= constraint.bound if constraint.at_least else value <= constraint.bound
        return np.asarray(feasible[np.arange(count) % len(feasible)])

    def constrained(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Draws at the answers, covariance with them and variance of a measurement, of constrained quantities
        that are not the objective."""
        problem = self.state.problem
        objective = problem.goal.target
        named = [0] if any(constraint.metric in ("time", "cost") for constraint in problem.constraints) else []
        named += [1 + problem.metrics.index(constraint.metric) for constraint in problem.metric_constraints]
        found = []
        for index in dict.fromkeys(named):
            if index != objective:
                each = self._forest[:, :, index]
                off = each - each.mean(axis=0)
                leaf = np.square(self._forest_std[:, rows, index]).mean(axis=0)
                draws = each[np.arange(count) % len(each)][:, self.answers]
                found.append(
                    (draws, off[:, rows].T @ off[:, self.answers] / len(off), each[:, rows].var(axis=0) + leaf + 1e-12)
                )
        return found

    def covariance(self, rows: IntArray) -> FloatArray:
        """Covariance over the trees of the objective at some rows with the objective at the answers `[r, a]`."""
        off = self._objective - self._objective.mean(axis=0)
        return np.asarray(off[:, rows].T @ off[:, self.answers] / len(off))

    def variance(self, rows: IntArray) -> FloatArray:
        """Variance over the trees of the objective at some rows `[r]`."""
        return np.asarray(self._objective[:, rows].var(axis=0))

    def measurement_variance(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the objective at some rows: between trees and within leaves `[r]`."""
        return self.variance(rows) + self._leaf[rows] + 1e-12

    def after(self, rows: IntArray) -> Prediction:
        """The prediction for the answers `[r, a, m]` by trees that are grown again with the expected outcome of each row."""
        now = self.trees(self.state, self.seed)
        target = now.mean[0, rows][:, np.newaxis]
        free = np.zeros((len(rows), 1))
        children = self.state.after(rows, target, free, np.full((len(rows), 1), np.nan))
        prediction = self.trees(children, self.seed)
        return Prediction(
            prediction.form, prediction.mean[:, self.answers], prediction.std[:, self.answers], self.answers
        )

    @cached_property
    def _forest(self) -> FloatArray:
        """The prediction of each tree `[t, q, m]`."""
        return np.concatenate([prediction.mean for prediction in self._single])

    @cached_property
    def _forest_std(self) -> FloatArray:
        """Spread inside the leaves of each tree `[t, q, m]`."""
        return np.concatenate([prediction.std for prediction in self._single])

    @cached_property
    def _single(self) -> tuple[Prediction, ...]:
        alone = replace(self.trees, trees=1)
        return tuple(alone(self.state, derive(self.seed, "tree", number)) for number in range(self.trees.trees))

    @cached_property
    def _objective(self) -> FloatArray:
        """The objective of each tree `[t, q]`, smaller is better; log dollars where a model of log time predicts cost."""
        problem = self.state.problem
        if problem.kind == "metric":
            value = self._forest[:, :, problem.goal.target]
            return -value if problem.objective.maximise else value
        run = self._forest[:, :, 0]
        if self.trees.target == "log time":
            return run + np.log(problem.price) if problem.kind == "cost" else run
        return run if problem.kind == "cost" else run / problem.price

    @cached_property
    def _leaf(self) -> FloatArray:
        """Variance inside leaves of the objective's target `[q]`."""
        return np.asarray(np.square(self._forest_std[:, :, self.state.problem.goal.target]).mean(axis=0))
