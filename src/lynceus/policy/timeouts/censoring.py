"""Censored values: the training target of a run that was stopped before its end.

Each gets the order (with the prediction at that time), the outcome, and the state before the run. The target is never shorter than
the time that really ran.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.errors import InputError
from lynceus.models.prediction import run_distribution
from lynceus.models.state import State
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order
from lynceus.trial.outcome import Outcome, TrainingTarget


@dataclass(frozen=True, slots=True)
class LowerBound:
    """The time that ran, marked as a lower bound: for models that treat censored runs themselves."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The time that ran."""
        return TrainingTarget(outcome.seconds, outcome.metrics, censored=True, bound_s=outcome.seconds)


@dataclass(frozen=True, slots=True)
class TruncatedMean:
    """TG of ICDCS'20: E[C | C > L] = μ + σ φ(a)/(1 − Φ(a)), a = (L − μ)/σ, under the prediction of the order."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The truncated mean; the lower bound itself when the run was chosen without a model."""
        return estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


@dataclass(frozen=True, slots=True)
class LinearProgress:
    """The thesis: a straight line of time over progress, fitted to the reports by least squares and read at the target."""

    target: float = 1.0
    """The progress at which the job is done: 1 for a fraction of the work; replays of accuracies give the accuracy to reach."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The extrapolated time; the truncated mean when there is no usable progress."""
        points = [(t, p) for t, p in outcome.trace if t <= outcome.seconds]
        if len(points) >= 2:
            times, progress = np.array(points).T
            spread = progress - progress.mean()
            if (spread**2).sum() > 0:
                slope = float((spread * (times - times.mean())).sum() / (spread**2).sum())
                if slope > 0:
                    return estimate(outcome, float(times.mean() + slope * (self.target - progress.mean())))
        elif len(points) == 1 and points[0][1] > 0:
            return estimate(outcome, points[0][0] * self.target / points[0][1])
        return estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


@dataclass(frozen=True, slots=True)
class HighestCost:
    """The highest cost of any run so far (Max cost of ICDCS'20)."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The time that this row runs for that cost."""
        costs = [problem.cost(seen.row, seen.target.seconds) for seen in state.observations if seen.target is not None]
        seconds = float(problem.run_costs.seconds_at(np.asarray(max(costs, default=0.0)), np.asarray(order.row)))
        return estimate(outcome, seconds)


@dataclass(frozen=True, slots=True)
class Discard:
    """No training target; the row is only closed (iTuned, Vizier)."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Ideal: the exact full time, known only in replays of measured tables."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The time to the end."""
        if outcome.oracle_s is None:
            raise InputError(
                "timeout 'ideal' needs the full time of stopped runs, which only replays know; choose 'tg' for live runs."
            )
        return TrainingTarget(outcome.oracle_s, outcome.metrics)


def truncated_seconds(problem: Problem, order: Order, ran_s: float) -> float:
    """E[T | T > ran_s] under the prediction of the order; `ran_s` itself without one."""
    expected = order.plan.expected
    if expected is None:
        return ran_s
    run = run_distribution(expected.form, np.asarray(expected.mean[0]), np.asarray(expected.std[0]))
    if expected.form == "cost":
        usd = float(run.mean_above(problem.cost(order.row, ran_s)))
        seconds = float(problem.run_costs.seconds_at(np.asarray(usd), np.asarray(order.row)))
    else:
        seconds = float(run.mean_above(ran_s))
    return seconds if math.isfinite(seconds) else ran_s


def estimate(outcome: Outcome, seconds: float) -> TrainingTarget:
    """A training target of estimated length, never shorter than what ran."""
    return TrainingTarget(max(seconds, outcome.seconds), outcome.metrics, censored=True, bound_s=outcome.seconds)
