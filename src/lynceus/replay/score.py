"""The score of a replay: cost normalised to the optimum (CNO), and the money spent until it fell below a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.executors.table import Measurements
from lynceus.problem.problem import Problem

LEVELS = (2.0, 1.1, 1.0)
"""CNO levels in reported results; 1 is the optimum itself."""
TOLERANCE = 1e-9
"""Relative tolerance when a CNO is compared with a level: equal runs must not differ by the last bit of a division."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best configuration of a table; policies never see it."""

    row: int
    value: float
    """The objective, smaller is better (a maximised metric with its sign changed)."""
    cost_usd: float
    """Dollars of one production run of it: the unit of exploration cost."""
    cheapest_run_usd: float
    """Dollars of the cheapest run of the table, feasible or not."""

    def cno(self, value: float) -> float:
        """An objective value relative to the optimum: 1 is optimal, larger is worse.

        Costs and times are divided by the optimum; a maximised metric divides the optimum. Where a quotient has no meaning (a
        metric that reaches 0 or changes sign), everything worse than the optimum is infinitely far from it.
        """
        if value <= self.value + TOLERANCE * abs(self.value):
            return 1.0
        if value > 0 and self.value > 0:
            return value / self.value
        if value < 0 and self.value < 0:
            return self.value / value
        return math.inf


@dataclass(frozen=True, slots=True)
class Reached:
    """When a level was first reached."""

    usd: float
    """Dollars charged up to and including the run that reached it; infinite if none did."""
    trials: float
    """Runs up to and including it; infinite if none did."""


def optimum(problem: Problem, measured: Measurements) -> Optimum | None:
    """The best row that meets every constraint, under the problem's billing; None when no row does."""
    best: tuple[float, int] | None = None
    for row in range(len(measured.seconds)):
        value = true_value(problem, measured, row)
        if value is not None and (best is None or value < best[0]):
            best = (value, row)
    if best is None:
        return None
    value, row = best
    cheapest = float(problem.billing.charges(measured.seconds, problem.price).min())
    return Optimum(row, value, problem.cost(row, float(measured.seconds[row])), cheapest)


def true_value(problem: Problem, measured: Measurements, row: int) -> float | None:
    """The measured objective of a row, smaller is better; None when it violates a constraint or may not be recommended."""
    seconds = float(measured.seconds[row])
    metrics = {name: float(values[row]) for name, values in measured.metrics.items() if not np.isnan(values[row])}
    return problem.answer_value(row, seconds, metrics)


def reached(cno: Sequence[float], spent_usd: Sequence[float], level: float) -> Reached:
    """The first trial with a CNO of at most `level`, given CNO and money spent after each trial.

    >>> reached([math.inf, 1.5, 1.0], [0.1, 0.3, 0.4], 2.0)
    Reached(usd=0.3, trials=2)
    """
    for trial, (ratio, usd) in enumerate(zip(cno, spent_usd, strict=True), start=1):
        if ratio <= level * (1 + TOLERANCE):
            return Reached(usd, trial)
    return Reached(math.inf, math.inf)
