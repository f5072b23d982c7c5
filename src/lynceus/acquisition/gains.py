"""Gains: the acquisition functions of this room, asked about a belief in a situation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.acquisition.billing import billed_improvement
from lynceus.acquisition.gittins import gittins_index
from lynceus.acquisition.improvement import expected_improvement, truncated_improvement
from lynceus.distribution import Normal
from lynceus.errors import InputError
from lynceus.parts import Guess
from lynceus.problem import Problem
from lynceus.situation import Belief, FloatArray, Situation


@dataclass(frozen=True, slots=True)
class ConstrainedImprovement:
    """EIc: expected improvement over the best run that kept every limit, times (or jointly with) the chance to keep them."""

    exact: bool = False
    """E[(y* − C) 1{C ≤ ceiling}], because cost and deadline share one model; otherwise the papers' product EI · P(feasible).
    A model of log time always uses the exact form, as the known price turns it into one integral."""
    guess: Guess = "sigma"

    def __call__(self, belief: Belief, situation: Situation) -> FloatArray:
        """Scores `[b, q]` in units of the goal."""
        problem = situation.problem
        best = guessed_best(belief, situation, self.guess)[:, None]
        if problem.kind == "metric":
            index = problem.metrics.index(problem.goal.metric)
            metric = belief.metric(index)
            goal = Normal(np.negative(metric.mean), metric.std) if problem.goal.maximise else metric
            return expected_improvement(goal, best) * belief.feasible(problem)
        if belief.form == "log time":
            gain = _log_time_improvement(belief, situation, best)
        else:
            cost = belief.run()
            ceiling = problem.ceiling_usd
            if problem.kind == "time":
                # Seconds are dollars over the price, less what the tariff adds for the start.
                mean = (belief.mean[:, :, 0] - problem.tariff.fee_usd) / problem.price - problem.tariff.boot_s
                cost = Normal(mean, belief.std[:, :, 0] / problem.price)
                ceiling = problem.ceiling_s
            if self.exact:
                gain = truncated_improvement(cost, best, np.broadcast_to(ceiling, belief.mean.shape[:2]))
            else:
                gain = expected_improvement(cost, best) * belief.within_ceiling(problem)
        for limit in problem.metric_limits:
            metric = belief.metric(problem.metrics.index(limit.metric))
            gain = gain * (metric.sf(limit.bound) if limit.at_least else metric.cdf(limit.bound))
        return gain


@dataclass(frozen=True, slots=True)
class Improvement:
    """EI without regard to limits (a baseline)."""

    guess: Guess = "sigma"

    def __call__(self, belief: Belief, situation: Situation) -> FloatArray:
        """Scores `[b, q]` in units of the goal."""
        free = replace(situation, problem=situation.problem.with_limits(()))
        return ConstrainedImprovement(guess=self.guess)(belief, free)


@dataclass(frozen=True, slots=True)
class PandoraIndex:
    """How far the Gittins index g(x) lies under the best: E[(g − C)⁺ 1{limits}] = λ·E[charge], run the row with the smallest g.

    Weitzman's rule for opening boxes, used by Xie et al. (2024) as an acquisition function. Money is inside the index already, so a
    planner should not divide by dollars again (`per: run`). A positive score means that the run is worth its money.
    """

    future_runs: float = 100.0
    """1/λ: how many future runs of the job profit from an improvement."""
    guess: Guess = "likely"

    def __post_init__(self) -> None:
        if not self.future_runs > 0:
            raise ValueError(f"future_runs is {self.future_runs}; at least some run must profit")

    def __call__(self, belief: Belief, situation: Situation) -> FloatArray:
        """Scores `[b, q]` in dollars; −inf where the limits cannot be kept."""
        problem, tariff, shape = situation.problem, situation.problem.tariff, belief.mean.shape[:2]
        if problem.kind != "cost":
            raise InputError(
                f"gain 'pandora-index' compares dollars with dollars; the objective is {problem.goal}, not cost."
            )
        best, weight = guessed_best(belief, situation, self.guess)[:, None], 1.0 / self.future_runs
        charge, run = belief.charge(situation, situation.caps_s()), belief.run()
        if belief.form == "cost":
            index = gittins_index(run, charge, weight, np.broadcast_to(problem.ceiling_usd, shape))
        else:
            price = _price_of_runs(belief, problem)
            seconds = gittins_index(run, charge / price, weight, np.broadcast_to(problem.ceiling_s, shape))
            index = price * (seconds + tariff.boot_s) + tariff.fee_usd
        return np.asarray(best - index)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The chance to keep every limit."""

    def __call__(self, belief: Belief, situation: Situation) -> FloatArray:
        """Probabilities `[b, q]`."""
        return belief.feasible(situation.problem)


def guessed_best(belief: Belief, situation: Situation, guess: Guess) -> FloatArray:
    """The best goal value of each situation `[b]`, with a stand-in where nothing feasible is known.

    `sigma`: highest value told + 3 · largest σ over open rows (ICDCS'20; `root sigma`: + 3 · √σ, as its program does).
    `ceiling`: the most that a run which keeps the limits can cost.
    `likely`: the same of the cheapest row that keeps them with an even chance: what one would settle for now, so that
    dearer rows have nothing to offer and cheaper ones are valued for being cheaper.
    A model of log time never uses σ, because three standard deviations of a logarithm are a factor, not an amount.
    """
    unknown = np.isnan(situation.best)
    if not unknown.any():
        return situation.best
    problem = situation.problem
    if belief.form == "log time" and problem.kind != "metric" and guess != "likely":
        guess = "ceiling"
    if guess == "likely":
        stand_in = _settled_for(belief, situation)
    elif guess == "ceiling":
        stand_in = np.full(len(situation), _ceiling_value(situation))
    else:
        std = belief.std[:, :, 0]
        if problem.kind == "metric":
            std = belief.std[:, :, 1 + problem.metrics.index(problem.goal.metric)]
        elif problem.kind == "time":
            std = std / problem.price
        largest = np.where(situation.open_in_each(), std, 0.0).max(axis=1)
        worst = np.nan_to_num(situation.worst_in_each(belief.form))
        stand_in = worst + 3.0 * (np.sqrt(largest) if guess == "root sigma" else largest)
    return np.where(unknown, stand_in, situation.best)


def _ceiling_value(situation: Situation) -> float:
    """The worst value of the goal that still keeps the limits; twice the worst told where no limit bounds it."""
    problem = situation.problem
    ceiling = {"cost": problem.ceiling_usd, "time": problem.ceiling_s}.get(problem.kind)
    if ceiling is not None:
        bounded = ceiling[situation.open & np.isfinite(ceiling)]
        if len(bounded):
            return float(bounded.max())
    worst = situation.worst
    return 1.0 if np.isnan(worst) else worst + abs(worst)


def _settled_for(belief: Belief, situation: Situation) -> FloatArray:
    """The ceiling of the cheapest open row that keeps the limits with an even chance, or else of the likeliest `[b]`."""
    problem = situation.problem
    ceiling = {"cost": problem.ceiling_usd, "time": problem.ceiling_s}.get(problem.kind)
    if ceiling is None or not np.isfinite(ceiling).all():
        return np.full(len(situation), _ceiling_value(situation))
    chance = np.where(situation.open_in_each(), belief.feasible(problem), -1.0)
    even = np.where(chance >= 0.5, ceiling, np.inf).min(axis=1)
    return np.asarray(np.where(np.isfinite(even), even, ceiling[chance.argmax(axis=1)]))


def _log_time_improvement(belief: Belief, situation: Situation, best: FloatArray) -> FloatArray:
    problem, run = situation.problem, belief.run()
    if problem.kind == "time":
        return truncated_improvement(run, best, np.broadcast_to(problem.ceiling_s, belief.mean.shape[:2]))
    tariff = problem.tariff
    price = _price_of_runs(belief, problem)
    return billed_improvement(run, best - tariff.fee_usd, price, tariff.boot_s, tariff.minimum_s, problem.ceiling_s)


def _price_of_runs(belief: Belief, problem: Problem) -> FloatArray:
    """Dollars per second, with the restarts that a run of the believed length has `[q]` or `[b, q]`."""
    if problem.restarts is None:
        return problem.price
    return problem.price_of_runs(np.exp(np.minimum(belief.mean[:, :, 0], 700.0)))
