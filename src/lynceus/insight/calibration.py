"""Predicted against seen: whether the model deserves trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.history import End, History, Order
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
    asked = [seen for seen in history if seen.order.plan.expected is not None and seen.outcome.end is not End.FAILED]
    told = intervals(problem, [seen.order for seen in asked]).tolist()
    return Calibration(
        tuple(
            Prediction(seen.order.number, low, middle, high, seen.outcome.seconds, seen.outcome.end is End.CAPPED)
            for seen, (low, middle, high) in zip(asked, told, strict=True)
        )
    )


def intervals(problem: Problem, orders: Sequence[Order]) -> NDArray[np.float64]:
    """For each order the ends and the middle of the model's 80 % interval for its time: `[n, (low, middle, high)]` in seconds.

    NaN where no model was asked. All orders at once: a history of ten thousand runs takes milliseconds.
    """
    found = np.full((len(orders), 3), math.nan)
    shares = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
    forms: tuple[Literal["cost", "log time"], ...] = ("cost", "log time")
    for form in forms:
        places = [place for place, order in enumerate(orders) if _form(order) == form]
        if not places:
            continue
        beliefs = [expected for place in places if (expected := orders[place].plan.expected) is not None]
        mean, std = (np.array([getattr(one, name)[0] for one in beliefs]) for name in ("mean", "std"))
        belief = run_distribution(form, mean, std)
        seconds = np.stack([np.asarray(belief.quantile(share)) for share in shares], axis=1)
        if form == "cost":
            price = problem.price[[orders[place].row for place in places]][:, None]
            seconds = np.maximum(problem.tariff.seconds_for(seconds, price), 0.0)
        found[places] = seconds
    return found


def _form(order: Order) -> str | None:
    return None if order.plan.expected is None else order.plan.expected.form
