"""Predicted against measured times: whether the model deserves trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.models.prediction import run_distribution
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observations

COVERAGE = 0.8
"""Share of runs that the shown interval should contain."""


@dataclass(frozen=True)
class PredictedRun:
    """What the model predicted of a run before it started, and what happened."""

    number: int
    low_s: float
    """The ends and the median of the 80 % interval of its time."""
    middle_s: float
    high_s: float
    runtime_s: float
    """How long it ran."""
    censored: bool
    """The run was stopped: its full time is longer than `runtime_s`."""

    @property
    def inside(self) -> bool | None:
        """Whether the full time lies in the interval; None when a stopped run cannot tell."""
        if self.censored:
            return False if self.runtime_s > self.high_s else None
        return self.low_s <= self.runtime_s <= self.high_s


@dataclass(frozen=True)
class Calibration:
    """All predictions of a study, and how good they were."""

    judged: int
    """Runs that can tell whether the interval contained their time: finished ones, and those stopped above it."""
    inside: int
    """Those of them whose time lay in the 80 % interval."""
    coverage: float
    """`inside / judged`; NaN without a judged run."""
    median_factor: float
    """The median of max(measured/predicted, predicted/measured) over finished runs: 1 is perfect; NaN without any."""
    predictions: tuple[PredictedRun, ...]

    @classmethod
    def of(cls, predictions: Sequence[PredictedRun]) -> Calibration:
        """Judge predictions."""
        verdicts = [one.inside for one in predictions]
        judged, inside = sum(one is not None for one in verdicts), sum(one is True for one in verdicts)
        factors = [
            max(one.runtime_s / one.middle_s, one.middle_s / one.runtime_s)
            for one in predictions
            if not one.censored and one.middle_s > 0 and one.runtime_s > 0
        ]
        coverage = inside / judged if judged else math.nan
        return cls(judged, inside, coverage, float(np.median(factors)) if factors else math.nan, tuple(predictions))


def calibration(problem: Problem, observations: Observations) -> Calibration:
    """The predictions of every run that a model chose and that did not fail."""
    predicted = [
        seen for seen in observations if seen.order.plan.expected is not None and seen.outcome.end is not End.FAILED
    ]
    found = intervals(problem, [seen.order for seen in predicted]).tolist()
    return Calibration.of(
        [
            PredictedRun(seen.order.number, low, middle, high, seen.outcome.seconds, seen.outcome.end is End.TIMEOUT)
            for seen, (low, middle, high) in zip(predicted, found, strict=True)
        ]
    )


def intervals(problem: Problem, orders: Sequence[Order]) -> NDArray[np.float64]:
    """For each order the low end, the median and the high end of the predicted 80 % interval of its time: `[n, 3]` in seconds.

    NaN where no model predicted. Vectorized: ten thousand runs take milliseconds.
    """
    found = np.full((len(orders), 3), math.nan)
    quantiles = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
    forms: tuple[Literal["cost", "log time"], ...] = ("cost", "log time")
    for form in forms:
        places = [place for place, order in enumerate(orders) if _form(order) == form]
        if not places:
            continue
        expected = [one for place in places if (one := orders[place].plan.expected) is not None]
        mean, std = (np.array([getattr(one, name)[0] for one in expected]) for name in ("mean", "std"))
        run = run_distribution(form, mean, std)
        seconds = np.stack([np.asarray(run.quantile(quantile)) for quantile in quantiles], axis=1)
        if form == "cost":
            price = problem.price[[orders[place].row for place in places]][:, None]
            seconds = np.maximum(problem.billing.seconds_for(seconds, price), 0.0)
        found[places] = seconds
    return found


def _form(order: Order) -> str | None:
    return None if order.plan.expected is None else order.plan.expected.form
