"""What a run teaches about the best answer: entropy search on a finite table, and the incumbent that it would leave.

On a finite table nothing is sampled but the function itself: k joint draws of the goal at the a rows that may be the answer say
how often each is the best (p_opt), and what a measurement elsewhere would change follows from covariances
(Hennig and Schuler 2012, "Entropy search"). Values are small when good. Letters: k draws, a answers, r rows that may be run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.distribution import Normal
from lynceus.parts import Foresight
from lynceus.problem import Problem
from lynceus.situation import Belief, BoolArray, FloatArray, IntArray, Situation, run_distribution

_GROUPS = 24
"""Winners that are told apart; all others together are one more group. Coarser groups can only lose information."""
_SHRINK = 5.0
"""Pseudo-draws that pull the covariance within a group towards the overall one."""
_RESIDUAL = 1e-3
"""The least share of a measurement's variance that the answers cannot explain: a guard against rounding."""


def chance_of_best(draws: FloatArray, allowed: BoolArray | None = None) -> FloatArray:
    """p_opt `[a]`: how often each answer has the smallest of the `draws [k, a]`; `allowed [k, a]` leaves out what breaks a limit.

    >>> chance_of_best(np.array([[0.0, 1.0], [2.0, 1.0], [0.5, 3.0], [0.2, 0.4]]))
    array([0.75, 0.25])
    """
    return np.asarray(np.bincount(winners(draws, allowed), minlength=draws.shape[1]) / len(draws))


def winners(draws: FloatArray, allowed: BoolArray | None = None) -> IntArray:
    """The best answer of each draw `[k]`; where a draw allows none, the best of all."""
    if allowed is not None:
        draws = np.where(allowed | ~allowed.any(axis=1, keepdims=True), draws, np.inf)
    return np.asarray(np.argmin(draws, axis=1), dtype=np.int64)


def knowledge(chance: FloatArray) -> FloatArray:
    """KL(p ‖ uniform) along the last axis, in nats: 0 when any answer may be the best, ln a when it is known.

    >>> knowledge(np.array([[0.5, 0.5], [0.0, 1.0]])).round(4)
    array([0.    , 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(chance > 0, chance * np.log(chance), 0.0)
    return np.asarray(terms.sum(axis=-1) + np.log(chance.shape[-1]))


def information(draws: FloatArray, best: IntArray, cross: FloatArray, seen: FloatArray) -> FloatArray:
    """Expected gain of knowledge about the best answer from one measurement at each row `[r]`, in nats; at least 0.

    The information between the measurement y and the winner is symmetric: H(y) - Σ_i p_i H(y | i wins), both entropies taken as
    those of normals. Given are draws of f at the answers `[k, a]`, their winners `best [k]`, the covariance of f at a row with f
    at the answers, `cross [r, a]`, and the variance of y, `seen [r]`. y depends on the winner through its regression on the
    answers alone, so that a row without covariance tells exactly nothing.
    """
    named, group = _groups(best)
    f = draws[:, named]
    overall = np.atleast_2d(np.cov(f, rowvar=False, bias=True))
    overall = overall + (1e-9 * max(float(np.trace(overall)) / len(named), 1e-300)) * np.eye(len(named))
    slope = np.linalg.solve(overall, cross[:, named].T).T
    explained = np.einsum("ri,ij,rj->r", slope, overall, slope, optimize=True)
    seen = np.maximum(seen, 1e-300)
    # Draws are finite: where they make a row explain more than its variance, its slope is shortened.
    shorten = np.minimum(1.0, np.sqrt((1.0 - _RESIDUAL) * seen / np.maximum(explained, 1e-300)))
    slope, explained = slope * shorten[:, np.newaxis], explained * np.square(shorten)
    gain = np.zeros(len(seen))
    for i in np.unique(group):
        here = f[group == i]
        within = np.atleast_2d(np.cov(here, rowvar=False, bias=True)) if len(here) > 1 else np.zeros_like(overall)
        within = (len(here) * within + _SHRINK * overall) / (len(here) + _SHRINK)
        left = seen - explained + np.einsum("ri,ij,rj->r", slope, within, slope, optimize=True)
        gain -= 0.5 * len(here) / len(f) * np.log(np.maximum(left, _RESIDUAL * seen) / seen)
    return np.maximum(gain, 0.0)


def _groups(best: IntArray) -> tuple[IntArray, IntArray]:
    """The most frequent winners `[g]`, and the group of each draw `[k]` (g: somebody else)."""
    answer, times = np.unique(best, return_counts=True)
    named = answer[np.argsort(-times, kind="stable")[:_GROUPS]]
    place = np.full(int(best.max()) + 1, len(named))
    place[named] = np.arange(len(named))
    return named, place[best]


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """What a measurement at each of r rows would show, together with k draws at the answers."""

    draws: FloatArray
    """f at the row in each draw, `[k, r]`."""
    noise: FloatArray
    """What a measurement adds to f in each draw, `[k, r]`."""
    cross: FloatArray
    """Covariance of f at the row with f at the answers, `[r, a]`."""
    seen: FloatArray
    """Variance of a measurement, `[r]`."""


def recounted(draws: FloatArray, measured: Measured, points: int = 5, allowed: BoolArray | None = None) -> FloatArray:
    """The same gain `[r]` by counting again: E_y[KL(p_opt(· | y) ‖ uniform)] - KL(p_opt ‖ uniform).

    Every draw is moved by what an imagined value y says against it (Matheron's rule, a rank-one update):
    f'(a) = f(a) + cov(a, row) (y - f(row) - ε) / var(y). Only answers that win in some draw, or nearly, are counted.
    """
    near = _contenders(draws, allowed)
    f = draws[:, near]
    mask = None if allowed is None else allowed[:, near]
    blocked = None if mask is None else np.where(mask | ~mask.any(axis=1, keepdims=True), 0.0, np.inf)
    if blocked is not None:
        f = f + blocked
    now = knowledge(np.bincount(np.argmin(f, axis=1), minlength=len(near)) / len(f))
    gain = np.empty(len(measured.seen))
    offsets = np.arange(points)[:, np.newaxis] * len(near)
    for row in range(len(gain)):
        seen = measured.draws[:, row] + measured.noise[:, row]
        y, weight = Normal(np.array([seen.mean()]), np.array([np.sqrt(measured.seen[row])])).nodes(points)
        push = (y[0][:, np.newaxis] - seen) / max(float(measured.seen[row]), 1e-300)
        moved = f + push[:, :, np.newaxis] * measured.cross[row, near]
        count = np.bincount((np.argmin(moved, axis=2) + offsets).ravel(), minlength=points * len(near))
        gain[row] = weight @ knowledge(count.reshape(points, len(near)) / len(f)) - now
    return np.maximum(gain, 0.0)


def _contenders(draws: FloatArray, allowed: BoolArray | None, most: int = 64) -> NDArray[np.intp]:
    """Answers by how often they are among the best of a draw, at most `most` `[c]`."""
    shown = draws if allowed is None else np.where(allowed | ~allowed.any(axis=1, keepdims=True), draws, np.inf)
    first = min(5, shown.shape[1])
    top = np.argpartition(shown, first - 1, axis=1)[:, :first] if first < shown.shape[1] else np.argsort(shown, axis=1)
    times = np.bincount(top.ravel(), minlength=shown.shape[1])
    return np.sort(np.argsort(-times, kind="stable")[:most])


@dataclass(frozen=True, slots=True)
class KnowingTheBest:
    """ES: how much a run of each row would teach about which answer is the best (Fabolas, Fabulinus)."""

    draws: int = 1024
    within_limits: bool = False
    """Ask for the best answer that keeps the limits, draw by draw; otherwise limits are left to others (the papers)."""

    def __call__(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """Nats `[r]`, by the symmetric form."""
        draws = foresight.draws(foresight.answers, self.draws)
        best = winners(draws, foresight.kept(self.draws) if self.within_limits else None)
        return information(draws, best, foresight.cross(rows), foresight.seen(rows))

    def refined(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """The same for a few rows, by counting again."""
        count = min(self.draws, 512)
        answers = len(foresight.answers)
        joint = foresight.draws(np.concatenate([foresight.answers, rows]), count)
        allowed = foresight.kept(count) if self.within_limits else None
        seen = foresight.seen(rows)
        noise = np.sqrt(np.maximum(seen - foresight.cross_own(rows), 0.0))
        # One stream of luck for all rows, so that they are compared under the same errors.
        luck = np.random.default_rng(0).standard_normal((count, 1))
        measured = Measured(joint[:, answers:], luck * noise, foresight.cross(rows), seen)
        return recounted(joint[:, :answers], measured, allowed=allowed)


@dataclass(frozen=True, slots=True)
class KnowingTheBestAllowed:
    """How much a run of each row would teach about which answer is the best of those that keep the limits.

    Whether an answer keeps its limits is as unknown as its goal, and a run reports both. So the winners are those of draws in which
    limits are regarded, and everything counts that a run reports: what it says of the goal, and what it says of each limited quantity.
    Their processes are independent, so that the information is taken as the sum.
    """

    draws: int = 1024

    def __call__(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """Nats `[r]`, by the symmetric form."""
        draws = foresight.draws(foresight.answers, self.draws)
        best = winners(draws, foresight.kept(self.draws))
        gain = information(draws, best, foresight.cross(rows), foresight.seen(rows))
        for drawn, cross, seen in foresight.limited(rows, self.draws):
            gain = gain + information(drawn, best, cross, seen)
        return gain


@dataclass(frozen=True, slots=True)
class ConstrainedIncumbent:
    """CEA: how good, and how surely within the limits, the recommendation would be after a run of each row (Fabulinus, eq. 10)."""

    sure: float = 0.99
    """A recommendation must keep every limit with this probability; if none does, the surest is taken."""

    def __call__(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """A(x') · P(x' keeps the limits) `[r]`, x' the incumbent after the row showed what is expected of it."""
        belief = foresight.after(rows)
        problem, answers = situation.problem, foresight.answers
        chance = chance_within(belief, problem, answers)
        value = goal_value(belief, problem, answers)
        sure = chance >= self.sure
        chosen = np.where(sure.any(axis=1), np.argmin(np.where(sure, value, np.inf), axis=1), np.argmax(chance, axis=1))
        each = np.arange(len(rows))
        return np.asarray(merit(value[each, chosen], problem) * chance[each, chosen])


def chance_within(belief: Belief, problem: Problem, rows: IntArray) -> FloatArray:
    """P(every limit is kept) `[b, r]` of a belief about some rows only."""
    run = run_distribution(belief.form, belief.mean[:, :, 0], belief.std[:, :, 0])
    chance = np.ones(belief.mean.shape[:2])
    if np.isfinite(problem.ceiling_s).any():
        chance = run.cdf((problem.ceiling_usd if belief.form == "cost" else problem.ceiling_s)[rows])
    for limit in problem.metric_limits:
        metric = belief.metric(problem.metrics.index(limit.metric))
        chance = chance * (metric.sf(limit.bound) if limit.at_least else metric.cdf(limit.bound))
    return chance


def goal_value(belief: Belief, problem: Problem, rows: IntArray) -> FloatArray:
    """The believed goal, smaller is better `[b, r]`, of a belief about some rows only."""
    if problem.kind == "metric":
        mean = belief.mean[:, :, 1 + problem.metrics.index(problem.goal.metric)]
        return -mean if problem.goal.maximise else mean
    expected = run_distribution(belief.form, belief.mean[:, :, 0], belief.std[:, :, 0]).expectation()
    if problem.kind == "cost":
        return expected if belief.form == "cost" else problem.costs(expected, rows)
    return problem.seconds_at(expected, rows) if belief.form == "cost" else expected


def merit(value: FloatArray, problem: Problem) -> FloatArray:
    """A positive number that grows as the goal gets better: accuracy itself, or one over what is to be made small."""
    if problem.goal.maximise:
        return np.maximum(-value, 1e-9)
    return np.asarray(1.0 / np.maximum(value, 1e-9))
