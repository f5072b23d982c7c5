"""Whether samples of the data rank configurations as all data do: the assumption that every search on samples makes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lynceus.fraction import configurations
from lynceus.history import End, History
from lynceus.problem import Problem

LOW = 0.7
"""A rank correlation under this is worth a warning."""
FEWEST = 4
"""Configurations that must have run on both shares before their ranks are shown."""
ENOUGH = 5
"""And before a low correlation is worth a warning."""


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """How alike two shares of the data rank the configurations that ran on both."""

    quantity: str
    """`time` or the name of a metric."""
    share: float
    against: float
    """The larger share: all data, or the largest on which enough of the same configurations ran."""
    correlation: float
    """Spearman's, from −1 (reversed) to 1 (the same order); NaN where nothing varies."""
    configurations: int

    @property
    def warning(self) -> str | None:
        """A sentence when ranks disagree; nothing otherwise."""
        if math.isnan(self.correlation) or self.correlation >= LOW or self.configurations < ENOUGH:
            return None
        return (
            f"on {self.share:.3g} of the data {self.quantity} ranks {self.configurations} configurations unlike on "
            f"{self.against:.3g} (rank correlation {self.correlation:.2f}): what wins on this sample may not win on all data."
        )


def rank_agreements(problem: Problem, history: History) -> list[RankAgreement]:
    """Every share against the largest one on which at least four of its configurations ran; smallest share first."""
    if problem.fraction is None:
        return []
    group = configurations(problem.space, problem.fraction)
    seen: dict[str, dict[float, dict[int, float]]] = {}
    for run in history:
        if run.outcome.end is End.FINISHED:
            share = float(problem.share[run.row])
            for name, value in (("time", run.outcome.seconds), *run.outcome.metrics.items()):
                if name == "time" or name in problem.metrics:
                    seen.setdefault(name, {}).setdefault(share, {})[int(group[run.row])] = value
    found = []
    for quantity, by_share in seen.items():
        for share in sorted(by_share):
            for against in sorted((other for other in by_share if other > share), reverse=True):
                both = sorted(by_share[share].keys() & by_share[against].keys())
                if len(both) >= FEWEST:
                    left, right = ([by_share[s][one] for one in both] for s in (share, against))
                    found.append(RankAgreement(quantity, share, against, spearman(left, right), len(both)))
                    break
    return found


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
