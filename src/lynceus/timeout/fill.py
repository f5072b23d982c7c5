"""Fills: what the model hears about a run that was stopped before its end.

Every fill gets the order (with the belief under which it was made), the facts, and the situation before the run. What it tells is
never less than what was already paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.errors import InputError
from lynceus.history import Order, Outcome, Told
from lynceus.problem import Problem
from lynceus.situation import Situation, run_distribution


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Tell what ran, marked as a lower bound: for models that treat censored runs by themselves."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """The time that ran."""
        return Told(outcome.seconds, outcome.metrics, censored=True, bound_s=outcome.seconds)


@dataclass(frozen=True, slots=True)
class TruncatedMean:
    """TG of ICDCS'20: E[C | C > L] = μ + σ φ(a)/(1 − Φ(a)), a = (L − μ)/σ, under the belief of the order."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """The truncated mean; the lower bound itself when the order was made without a model."""
        return _estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


@dataclass(frozen=True, slots=True)
class LinearProgress:
    """The thesis: a straight line of time on progress (least squares through what was reported), read off at the target."""

    target: float = 0.85
    """The progress at which the job is done (the accuracy to reach, or 1 for a fraction)."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """The extrapolated time; the truncated mean when progress tells nothing."""
        points = [(t, p) for t, p in outcome.trace if t <= outcome.seconds]
        if len(points) >= 2:
            times, progress = np.array(points).T
            spread = progress - progress.mean()
            if (spread**2).sum() > 0:
                slope = float((spread * (times - times.mean())).sum() / (spread**2).sum())
                if slope > 0:
                    return _estimate(outcome, float(times.mean() + slope * (self.target - progress.mean())))
        elif len(points) == 1 and points[0][1] > 0:
            return _estimate(outcome, points[0][0] * self.target / points[0][1])
        return _estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


@dataclass(frozen=True, slots=True)
class HighestCost:
    """The highest cost seen so far in any run (Max cost of ICDCS'20)."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """That cost at this row's price."""
        costs = [problem.cost(seen.row, seen.told.seconds) for seen in situation.history if seen.told is not None]
        seconds = float(problem.seconds_at(np.asarray(max(costs, default=0.0)), np.asarray(order.row)))
        return _estimate(outcome, seconds)


@dataclass(frozen=True, slots=True)
class Nothing:
    """The model hears nothing; the row is only closed (iTuned, Vizier)."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """Nothing."""
        return None


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Ideal: the exact full time, known only when a measured table is replayed."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """The time to the end."""
        if outcome.oracle_s is None:
            raise InputError(
                "timeout 'ideal' needs to know the end of a stopped run, which only a replayed table does; choose 'tg' for live runs."
            )
        return Told(outcome.oracle_s, outcome.metrics)


@dataclass(frozen=True, slots=True)
class PublishedProgram:
    """What the program published with ICDCS'20 records for a stopped run, repeated to compare with its numbers.

    Stopped at the deadline: the true cost. Stopped at the incumbent's cost: progress at the stop, read at the nearest tick, decides —
    at the target already: the incumbent's cost; none yet: the true cost; otherwise the truncated mean. Replay only.
    """

    target: float = 0.85
    tick_s: float = 30.0

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """The program's record."""
        if outcome.oracle_s is None:
            raise InputError(
                "timeout 'authors' repeats a replay program and needs the end of stopped runs; choose 'tg' for live runs."
            )
        if outcome.seconds >= problem.deadline_s * (1 - 1e-9):
            return Told(outcome.oracle_s, outcome.metrics)
        ticks = round(outcome.seconds / self.tick_s)
        progress = outcome.trace[min(ticks, len(outcome.trace)) - 1][1] if ticks and outcome.trace else 0.0
        if progress >= self.target:
            return Told(outcome.seconds, outcome.metrics)
        if progress <= 0.0:
            return Told(outcome.oracle_s, outcome.metrics)
        return _estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


def truncated_seconds(problem: Problem, order: Order, ran_s: float) -> float:
    """E[T | T > what ran], through the cost model's units if that is what was modelled."""
    expected = order.plan.expected
    if expected is None:
        return ran_s
    run = run_distribution(expected.form, np.asarray(expected.mean[0]), np.asarray(expected.std[0]))
    if expected.form == "cost":
        usd = float(run.mean_above(problem.cost(order.row, ran_s)))
        seconds = float(problem.seconds_at(np.asarray(usd), np.asarray(order.row)))
    else:
        seconds = float(run.mean_above(ran_s))
    return seconds if math.isfinite(seconds) else ran_s


def _estimate(outcome: Outcome, seconds: float) -> Told:
    return Told(max(seconds, outcome.seconds), outcome.metrics, censored=True, bound_s=outcome.seconds)
