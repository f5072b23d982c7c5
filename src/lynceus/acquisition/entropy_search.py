"""The information of a run about the best answer: entropy search on a finite table, and the incumbent after a run.

On a finite table only the function itself is sampled: k joint draws of the objective at the a answers (rows that may be recommended)
show how often each is the best (p_opt), and what a measurement elsewhere would change follows from covariances
(Hennig and Schuler 2012, "Entropy search"). Smaller values are better. Letters: k draws, a answers, r rows that may be run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.models.distribution import Normal
from lynceus.models.interfaces import JointPrediction
from lynceus.models.state import State
from lynceus.problem.data_fraction import configurations
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, FloatArray, IntArray

_GROUPS = 24
"""Winners that are distinguished; all others together are one more group. Coarser groups can only lose information."""
_SHRINK = 5.0
"""Pseudo-draws that pull the covariance within a group towards the overall one."""
_SMALLEST_SPREAD = 1e-200
"""Below this variance all draws are equal: the best answer is known, and no measurement has information."""
_RESIDUAL = 1e-3
"""The least share of a measurement's variance that the answers cannot explain: a guard against rounding."""


def probability_of_best(draws: FloatArray, feasible: BoolArray | None = None) -> FloatArray:
    """p_opt `[a]`: how often each answer has the smallest of the `draws [k, a]`, among the `feasible [k, a]` ones if given.

    >>> probability_of_best(np.array([[0.0, 1.0], [2.0, 1.0], [0.5, 3.0], [0.2, 0.4]]))
    array([0.75, 0.25])
    """
    return np.asarray(np.bincount(winners(draws, feasible), minlength=draws.shape[1]) / len(draws))


def winners(draws: FloatArray, feasible: BoolArray | None = None) -> IntArray:
    """The best feasible answer of each draw `[k]`; where a draw has none, the best of all."""
    if feasible is not None:
        draws = np.where(feasible | ~feasible.any(axis=1, keepdims=True), draws, np.inf)
    return np.asarray(np.argmin(draws, axis=1), dtype=np.int64)


def knowledge(probability: FloatArray) -> FloatArray:
    """KL(p ‖ uniform) along the last axis, in nats: 0 when all answers are equally probable, ln a when the best one is known.

    >>> knowledge(np.array([[0.5, 0.5], [0.0, 1.0]])).round(4)
    array([0.    , 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(probability > 0, probability * np.log(probability), 0.0)
    return np.asarray(terms.sum(axis=-1) + np.log(probability.shape[-1]))


def information(draws: FloatArray, best: IntArray, covariance: FloatArray, variance: FloatArray) -> FloatArray:
    """Expected information about the best answer in one measurement at each row `[r]`, in nats; at least 0.

    The information between the measurement y and the winner is symmetric: H(y) - Σ_i p_i H(y | i wins), both entropies taken as
    those of normals. `draws [k, a]` are draws of f at the answers, `best [k]` their winners, `covariance [r, a]` that of f at a row
    with f at the answers, and `variance [r]` that of y. y depends on the winner only through its regression on the answers, so a row
    without covariance has exactly no information.
    """
    named, group = _groups(best)
    f = draws[:, named]
    overall = np.atleast_2d(np.cov(f, rowvar=False, bias=True))
    spread = float(np.trace(overall)) / len(named)
    if spread < _SMALLEST_SPREAD:
        return np.zeros(len(variance))
    overall = overall + 1e-9 * spread * np.eye(len(named))
    slope = np.linalg.solve(overall, covariance[:, named].T).T
    explained = np.einsum("ri,ij,rj->r", slope, overall, slope, optimize=True)
    variance = np.maximum(variance, 1e-300)
    # Draws are finite: where the answers explain more than the variance of a row, its slope is shortened.
    shorten = np.minimum(1.0, np.sqrt((1.0 - _RESIDUAL) * variance / np.maximum(explained, 1e-300)))
    slope, explained = slope * shorten[:, np.newaxis], explained * np.square(shorten)
    nats = np.zeros(len(variance))
    for i in np.unique(group):
        here = f[group == i]
        within = np.atleast_2d(np.cov(here, rowvar=False, bias=True)) if len(here) > 1 else np.zeros_like(overall)
        within = (len(here) * within + _SHRINK * overall) / (len(here) + _SHRINK)
        left = variance - explained + np.einsum("ri,ij,rj->r", slope, within, slope, optimize=True)
        nats -= 0.5 * len(here) / len(f) * np.log(np.maximum(left, _RESIDUAL * variance) / variance)
    return np.maximum(nats, 0.0)


def _groups(best: IntArray) -> tuple[IntArray, IntArray]:
    """The most frequent winners `[g]`, and the group of each draw `[k]` (g: any other)."""
    answer, times = np.unique(best, return_counts=True)
    named = answer[np.argsort(-times, kind="stable")[:_GROUPS]]
    place = np.full(int(best.max()) + 1, len(named))
    place[named] = np.arange(len(named))
    return named, place[best]


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """Measurements at each of r rows, one for each of the k draws at the answers."""

    draws: FloatArray
    """f at the row in each draw, `[k, r]`."""
    noise: FloatArray
    """What a measurement adds to f in each draw, `[k, r]`."""
    covariance: FloatArray
    """Covariance of f at the row with f at the answers, `[r, a]`."""
    variance: FloatArray
    """Variance of a measurement, `[r]`."""


def recounted(draws: FloatArray, measured: Measured, points: int = 5, feasible: BoolArray | None = None) -> FloatArray:
    """The same information `[r]` by counting again: E_y[KL(p_opt(· | y) ‖ uniform)] - KL(p_opt ‖ uniform).

    Every draw is moved towards an imagined value y (Matheron's rule, a rank-one update):
    f'(a) = f(a) + cov(a, row) (y - f(row) - ε) / var(y). Only answers that win in some draw, or nearly, are counted.
    """
    near = _contenders(draws, feasible)
    f = draws[:, near]
    mask = None if feasible is None else feasible[:, near]
    blocked = None if mask is None else np.where(mask | ~mask.any(axis=1, keepdims=True), 0.0, np.inf)
    if blocked is not None:
        f = f + blocked
    now = knowledge(np.bincount(np.argmin(f, axis=1), minlength=len(near)) / len(f))
    nats = np.empty(len(measured.variance))
    offsets = np.arange(points)[:, np.newaxis] * len(near)
    for row in range(len(nats)):
        values = measured.draws[:, row] + measured.noise[:, row]
        y, weight = Normal(np.array([values.mean()]), np.array([np.sqrt(measured.variance[row])])).nodes(points)
        push = (y[0][:, np.newaxis] - values) / max(float(measured.variance[row]), 1e-300)
        moved = f + push[:, :, np.newaxis] * measured.covariance[row, near]
        count = np.bincount((np.argmin(moved, axis=2) + offsets).ravel(), minlength=points * len(near))
        nats[row] = weight @ knowledge(count.reshape(points, len(near)) / len(f)) - now
    return np.maximum(nats, 0.0)


def _contenders(draws: FloatArray, feasible: BoolArray | None, most: int = 64) -> NDArray[np.intp]:
    """Answers by how often they are among the best of a draw, at most `most` `[c]`."""
    values = draws if feasible is None else np.where(feasible | ~feasible.any(axis=1, keepdims=True), draws, np.inf)
    first = min(5, values.shape[1])
    top = (
        np.argpartition(values, first - 1, axis=1)[:, :first] if first < values.shape[1] else np.argsort(values, axis=1)
    )
    times = np.bincount(top.ravel(), minlength=values.shape[1])
    return np.sort(np.argsort(-times, kind="stable")[:most])


@dataclass(frozen=True, slots=True)
class EntropySearch:
    """ES: how much a run of each row reduces the uncertainty about which answer is the best (Fabolas, Fabulinus)."""

    draws: int = 1024
    constrained: bool = False
    """Look for the best feasible answer, draw by draw; otherwise constraints are left to other utilities (the papers)."""

    def __call__(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """Nats `[r]`, by the symmetric form."""
        draws = joint.draws(joint.answers, self.draws)
        best = winners(draws, joint.feasible_draws(self.draws) if self.constrained else None)
        return information(draws, best, joint.covariance(rows), joint.measurement_variance(rows))

    def refined(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """The same for a few rows, by counting again."""
        count = min(self.draws, 512)
        answers = len(joint.answers)
        draws = joint.draws(np.concatenate([joint.answers, rows]), count)
        feasible = joint.feasible_draws(count) if self.constrained else None
        variance = joint.measurement_variance(rows)
        noise = np.sqrt(np.maximum(variance - joint.variance(rows), 0.0))
        # The same random numbers for all rows, so that they are compared under the same errors.
        errors = np.random.default_rng(0).standard_normal((count, 1))
        measured = Measured(draws[:, answers:], errors * noise, joint.covariance(rows), variance)
        return recounted(draws[:, :answers], measured, feasible=feasible)


@dataclass(frozen=True, slots=True)
class ConstrainedEntropySearch:
    """How much a run of each row reduces the uncertainty about which answer is the best feasible one.

    Whether an answer is feasible is as uncertain as its objective, and a run reports on both. So the winners are those of draws with
    constraints, and the information is the sum of what a run reports about the objective and about each constrained quantity; their
    processes are independent.
    """

    draws: int = 1024

    def __call__(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """Nats `[r]`, by the symmetric form."""
        draws = joint.draws(joint.answers, self.draws)
        best = winners(draws, joint.feasible_draws(self.draws))
        nats = information(draws, best, joint.covariance(rows), joint.measurement_variance(rows))
        for drawn, covariance, variance in joint.constrained(rows, self.draws):
            nats = nats + information(drawn, best, covariance, variance)
        return nats


@dataclass(frozen=True, slots=True)
class ConstrainedIncumbent:
    """CEA: how good, and how probably feasible, the recommendation would be after a run of each row (Fabulinus, eq. 10)."""

    confidence: float = 0.99
    """A recommendation must be feasible with this probability; if none is, the most probable one is taken."""

    def __call__(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """A(x') · P(x' is feasible) `[r]`, where x' is the incumbent after the row had its expected outcome."""
        prediction = joint.after(rows)
        feasible, value = prediction.feasible(state.problem), prediction.objective(state.problem)
        confident = feasible >= self.confidence
        chosen = np.where(
            confident.any(axis=1), np.argmin(np.where(confident, value, np.inf), axis=1), np.argmax(feasible, axis=1)
        )
        each = np.arange(len(rows))
        return np.asarray(_merit(value[each, chosen], state.problem) * feasible[each, chosen])


@dataclass(frozen=True, slots=True)
class FeasibleConfiguration:
    """P(x keeps the constraints on all data), as predicted now: the factor of Fabulinus without imagined runs (its future work)."""

    draws: int = 1024

    def __call__(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """The probability of the answer with the same configuration `[r]`; 0 where none may be recommended."""
        group = configurations(state.problem.space, state.problem.fraction)
        probability = np.zeros(int(group.max()) + 1)
        probability[group[joint.answers]] = joint.feasible_draws(self.draws).mean(axis=0)
        return np.asarray(probability[group[rows]])


def _merit(value: FloatArray, problem: Problem) -> FloatArray:
    """A positive number that grows as the objective improves: the maximised metric itself, or one over what is minimised."""
    if problem.objective.maximise:
        return np.maximum(-value, 1e-9)
    return np.asarray(1.0 / np.maximum(value, 1e-9))
