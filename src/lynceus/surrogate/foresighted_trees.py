"""Trees with foresight: every tree is one joint draw of the table, and imagined runs are really refitted (TrimTuner)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lynceus.randomness import derive
from lynceus.situation import Belief, BoolArray, FloatArray, IntArray, Situation
from lynceus.surrogate.trees import Trees


@dataclass(frozen=True, slots=True)
class ForesightedTrees:
    """Bagged trees whose disagreement, tree by tree, stands for a joint belief.

    The program published with TrimTuner takes the rows as independent; here two rows that fall into the same leaves of
    most trees teach of each other.
    """

    trees: Trees = field(
        default_factory=lambda: Trees(trees=20, target="log time", spread="total", no_more_than_samples=False)
    )

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """μ and σ of every row in every situation."""
        return self.trees(situation, seed)

    def foresee(self, situation: Situation, seed: int) -> TreesForesight:
        """The joint belief in the only situation."""
        if len(situation) != 1:
            raise ValueError(f"foresight is about one situation, got {len(situation)}")
        return TreesForesight(self.trees, situation, seed)


@dataclass(frozen=True, eq=False)
class TreesForesight:
    """Single trees as draws; the goal is smaller when better."""

    trees: Trees
    situation: Situation
    seed: int

    @cached_property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""
        mask = self.situation.problem.answerable
        return np.arange(len(self.situation.open)) if mask is None else np.flatnonzero(mask)

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the goal `[count, r]`: trees again and again, each with its leaves' own spread."""
        tree = np.arange(count) % len(self._goal)
        luck = np.random.default_rng(derive(self.seed, "leaves", self.situation.started))
        # One error per draw, not per row: what a leaf does not know, it does not know of all its rows.
        error = luck.standard_normal((count, 1))
        return np.asarray(self._goal[tree][:, rows] + error * np.sqrt(self._leaf[rows]))

    def kept(self, count: int) -> BoolArray:
        """Whether the answers keep every limit in each draw `[count, a]`."""
        problem = self.situation.problem
        mean, std = self._forest[:, self.answers], self._forest_std[:, self.answers]
        belief = Belief(self.trees.target, mean, std)
        ceiling = (problem.ceiling_usd if self.trees.target == "cost" else problem.ceiling_s)[self.answers]
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = ceiling if self.trees.target == "cost" else np.log(np.maximum(ceiling, 0.0))
        kept = belief.mean[:, :, 0] <= bound
        for limit in problem.metric_limits:
            value = belief.mean[:, :, 1 + problem.metrics.index(limit.metric)]
            kept &= value >= limit.bound if limit.at_least else value <= limit.bound
        return np.asarray(kept[np.arange(count) % len(kept)])

    def limited(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Draws at the answers, covariance with them and variance of a measurement, of what limits speak of besides the goal."""
        problem = self.situation.problem
        goal = 0 if problem.kind != "metric" else 1 + problem.metrics.index(problem.goal.metric)
        named = [0] if any(limit.metric in ("time", "cost") for limit in problem.limits) else []
        named += [1 + problem.metrics.index(limit.metric) for limit in problem.metric_limits]
        found = []
        for index in dict.fromkeys(named):
            if index != goal:
                each = self._forest[:, :, index]
                off = each - each.mean(axis=0)
                leaf = np.square(self._forest_std[:, rows, index]).mean(axis=0)
                draws = each[np.arange(count) % len(each)][:, self.answers]
                found.append(
                    (draws, off[:, rows].T @ off[:, self.answers] / len(off), each[:, rows].var(axis=0) + leaf + 1e-12)
                )
        return found

    def cross(self, rows: IntArray) -> FloatArray:
        """Covariance over the trees of the goal at some rows with the goal at the answers `[r, a]`."""
        off = self._goal - self._goal.mean(axis=0)
        return np.asarray(off[:, rows].T @ off[:, self.answers] / len(off))

    def cross_own(self, rows: IntArray) -> FloatArray:
        """Variance over the trees of the goal at some rows `[r]`."""
        return np.asarray(self._goal[:, rows].var(axis=0))

    def seen(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the goal at some rows: between trees and within leaves `[r]`."""
        return self.cross_own(rows) + self._leaf[rows] + 1e-12

    def after(self, rows: IntArray) -> Belief:
        """What would be believed of the answers `[r, a, m]` by trees that are grown again with the expected outcome."""
        now = self.trees(self.situation, self.seed)
        told = now.mean[0, rows][:, np.newaxis]
        nothing = np.zeros((len(rows), 1))
        children = self.situation.after(rows, told, nothing, np.full((len(rows), 1), np.nan))
        belief = self.trees(children, self.seed)
        return Belief(belief.form, belief.mean[:, self.answers], belief.std[:, self.answers])

    @cached_property
    def _forest(self) -> FloatArray:
        """What each tree predicts `[t, q, m]`."""
        return np.concatenate([belief.mean for belief in self._single])

    @cached_property
    def _forest_std(self) -> FloatArray:
        """Spread inside the leaves of each tree `[t, q, m]`."""
        return np.concatenate([belief.std for belief in self._single])

    @cached_property
    def _single(self) -> tuple[Belief, ...]:
        alone = replace(self.trees, trees=1)
        return tuple(alone(self.situation, derive(self.seed, "tree", number)) for number in range(self.trees.trees))

    @cached_property
    def _goal(self) -> FloatArray:
        """The goal of each tree `[t, q]`, smaller is better; log dollars where cost is the goal of a model of log time."""
        problem = self.situation.problem
        if problem.kind == "metric":
            value = self._forest[:, :, 1 + problem.metrics.index(problem.goal.metric)]
            return -value if problem.goal.maximise else value
        run = self._forest[:, :, 0]
        if self.trees.target == "log time":
            return run + np.log(problem.price) if problem.kind == "cost" else run
        return run if problem.kind == "cost" else run / problem.price

    @cached_property
    def _leaf(self) -> FloatArray:
        """Variance inside leaves of the goal's target `[q]`."""
        problem = self.situation.problem
        index = 0 if problem.kind != "metric" else 1 + problem.metrics.index(problem.goal.metric)
        return np.asarray(np.square(self._forest_std[:, :, index]).mean(axis=0))
