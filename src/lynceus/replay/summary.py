"""Many seeds of one policy in a few numbers. A seed that did not reach a level counts as infinite; none is dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.replay.run import Replay
from lynceus.replay.score import LEVELS


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and 90th percentile over seeds; infinite where too many seeds did not reach the level."""

    p50: float
    p90: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quantiles:
        """Linear between order statistics as in NumPy, but an infinite value does not spoil finite neighbours.

        >>> Quantiles.of([1.0, 2.0, 3.0])
        Quantiles(p50=2.0, p90=2.8)
        >>> Quantiles.of([1.0, math.inf])
        Quantiles(p50=inf, p90=inf)
        """
        return cls(quantile(values, 0.5), quantile(values, 0.9))


@dataclass(frozen=True, slots=True)
class Level:
    """Money and trials until the CNO was at most `cno`."""

    cno: float
    usd: Quantiles
    multiples: Quantiles
    """The same money in units of one run of the optimum."""
    trials: Quantiles
    unreached: int
    """Seeds that ended before they reached it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of a result table."""

    policy: str
    seeds: int
    levels: tuple[Level, ...]
    trials: Quantiles
    """Trials of a whole replay."""
    stopped: Quantiles
    """Trials stopped by a timeout."""
    spent_usd: Quantiles
    """Dollars of a whole replay."""
    decision_s: Quantiles
    """Seconds of a decision, over all decisions of all seeds."""
    cno_at_stop: Quantiles | None
    """Of the recommendation, over the seeds in which the policy stopped by itself; None when there was none."""


def summarise(replays: Sequence[Replay], optimum_usd: float) -> Summary:
    """The numbers of a result table for all seeds of one policy."""
    levels = []
    for cno in LEVELS:
        marks = [replay.reached(cno) for replay in replays]
        usd = [mark.usd for mark in marks]
        levels.append(
            Level(
                cno,
                Quantiles.of(usd),
                Quantiles.of([amount / optimum_usd for amount in usd]),
                Quantiles.of([mark.trials for mark in marks]),
                sum(math.isinf(amount) for amount in usd),
            )
        )
    steps = [replay.steps for replay in replays]
    at_stop = [replay.cno_at_stop for replay in replays if replay.cno_at_stop is not None]
    return Summary(
        replays[0].policy,
        len(replays),
        tuple(levels),
        Quantiles.of([len(trials) for trials in steps]),
        Quantiles.of([sum(step.state == "TIMEOUT" for step in trials) for trials in steps]),
        Quantiles.of([trials[-1].spent_usd if trials else 0.0 for trials in steps]),
        Quantiles.of([step.decision_s for trials in steps for step in trials] or [math.nan]),
        Quantiles.of(at_stop) if at_stop else None,
    )


def quantile(values: Sequence[float], q: float) -> float:
    """A quantile in which an infinite value does not spoil finite neighbours."""
    ordered = np.sort(np.asarray(values, dtype=float))
    place = q * (len(ordered) - 1)
    low, share = int(place), place - int(place)
    if share == 0.0:
        return float(ordered[low])
    # inf - inf is NaN: between two infinite neighbours, or a finite and an infinite one, the quantile is infinite.
    if math.isinf(ordered[low + 1]):
        return math.inf
    return float(ordered[low] + share * (ordered[low + 1] - ordered[low]))
