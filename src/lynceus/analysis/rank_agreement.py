"""Whether samples of the data rank configurations as all data do: the assumption of every search on data fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.problem.data_fraction import configurations, row_shares
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations

LOW = 0.7
"""A rank correlation below this is worth a warning."""
FEWEST = 4
"""Configurations that must have run on both fractions before their rank correlation is shown."""
ENOUGH = 5
"""Configurations from which on a low correlation is worth a warning."""


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """How similarly two data fractions rank the configurations that ran on both."""

    quantity: str
    """`time` or the name of a metric."""
    fraction: float
    """Share of the data, in (0, 1]."""
    against: float
    """The larger fraction: all data, or the largest on which enough of the same configurations ran."""
    correlation: float
    """Spearman's, from −1 (reversed) to 1 (the same order); NaN where nothing varies."""
    configurations: int
    warning: str | None
    """A sentence when the rankings disagree."""


def rank_agreements(problem: Problem, observations: Observations) -> list[RankAgreement]:
    """Every fraction against the largest one on which at least four of its configurations ran; smallest fraction first."""
    if problem.fraction is None:
        return []
    group = configurations(problem.space, problem.fraction)
    seen: dict[str, dict[float, dict[int, float]]] = {}
    for run in observations:
        if run.outcome.end is End.FINISHED:
            fraction = float(row_shares(problem)[run.row])
            for name, value in (("time", run.outcome.seconds), *run.outcome.metrics.items()):
                if name == "time" or name in problem.metrics:
                    seen.setdefault(name, {}).setdefault(fraction, {})[int(group[run.row])] = value
    found = []
    for quantity, by_fraction in seen.items():
        for fraction in sorted(by_fraction):
            for against in sorted((other for other in by_fraction if other > fraction), reverse=True):
                both = sorted(by_fraction[fraction].keys() & by_fraction[against].keys())
                if len(both) >= FEWEST:
                    left, right = ([by_fraction[side][one] for one in both] for side in (fraction, against))
                    found.append(_agreement(quantity, fraction, against, spearman(left, right), len(both)))
                    break
    return found


def _agreement(quantity: str, fraction: float, against: float, correlation: float, count: int) -> RankAgreement:
    warning = None
    if correlation < LOW and count >= ENOUGH:
        warning = (
            f"on {fraction:.3g} of the data {quantity} ranks {count} configurations differently than on {against:.3g} "
            f"(rank correlation {correlation:.2f}): what wins on this sample may not win on all data."
        )
    return RankAgreement(quantity, fraction, against, correlation, count, warning)


def spearman(left: list[float], right: list[float]) -> float:
    """Spearman's rank correlation, ties with their mean rank; NaN when one side is constant.

    >>> spearman([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    a, b = _ranks(np.asarray(left)), _ranks(np.asarray(right))
    spread = float(a.std() * b.std())
    return math.nan if spread == 0.0 else round(float(np.mean((a - a.mean()) * (b - b.mean())) / spread), 12)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    return np.asarray((last - (times - 1) / 2.0)[place])
