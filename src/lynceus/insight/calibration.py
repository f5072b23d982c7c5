"""Predicted against seen: whether the model deserves trust."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.history import End, History
from lynceus.problem import Problem
from lynceus.situation import run_distribution

COVERAGE = 0.8
"""Share of outcomes that the shown interval is meant to hold."""


@dataclass(frozen=True)
class Prediction:
    """What the model said of a run before it started, and what happened. Seconds throughout."""

    number: int
    low_s: float
    middle_s: float
    high_s: float
    seen_s: float
    censored: bool
    """The run was stopped: its true time is longer than `seen_s`."""

    @property
    def inside(self) -> bool | None:
        """Whether the truth lay in the interval; nothing when a stopped run cannot tell."""
        if self.censored:
            return False if self.seen_s > self.high_s else None
        return self.low_s <= self.seen_s <= self.high_s


@dataclass(frozen=True)
class Calibration:
    """All predictions of a study."""

    predictions: tuple[Prediction, ...]

    @property
    def coverage(self) -> float:
        """Share of decidable runs whose time lay in the 80 % interval; NaN without any."""
        return self.inside / self.decided if self.decided else math.nan

    @property
    def decided(self) -> int:
        """Runs that can tell whether the interval held the truth: finished ones, and those stopped above it."""
        return sum(one.inside is not None for one in self.predictions)

    @property
    def inside(self) -> int:
        """Those of them whose time lay in the 80 % interval."""
        return sum(one.inside is True for one in self.predictions)

    @property
    def typical_factor(self) -> float:
        """The median of max(seen/predicted, predicted/seen) over finished runs: 1 is perfect; NaN without any."""
        factors = [
            max(one.seen_s / one.middle_s, one.middle_s / one.seen_s)
            for one in self.predictions
            if not one.censored and one.middle_s > 0 and one.seen_s > 0
        ]
        return float(np.median(factors)) if factors else math.nan


def calibration(problem: Problem, history: History) -> Calibration:
    """Every run that a model had an opinion on."""
    found = []
    for seen in history:
        expected = seen.order.plan.expected
        if expected is None or seen.outcome.end is End.FAILED:
            continue
        belief = run_distribution(expected.form, np.array(expected.mean[0]), np.array(expected.std[0]))
        low, middle, high = (
            float(np.asarray(belief.quantile(share))) for share in ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
        )
        if expected.form == "cost":
            price = problem.price[seen.row]
            low, middle, high = (
                max(0.0, float(problem.tariff.seconds_for(np.asarray(usd), price))) for usd in (low, middle, high)
            )
        censored = seen.outcome.end is End.CAPPED
        found.append(Prediction(seen.order.number, low, middle, high, seen.outcome.seconds, censored))
    return Calibration(tuple(found))
