"""The incumbent: the best configuration known so far, by the median of its runs. The one place that decides which it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median_high, median_low

from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observation, Observations


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best configuration after some trials."""

    row: int
    value: float
    """The objective, smaller is better; times `Objective.sign` it has its own sign."""
    observation: Observation
    """The run that represents the configuration: its only one, or the median of several."""

    @property
    def number(self) -> int:
        """The number of that trial."""
        return self.observation.order.number


def incumbent(problem: Problem, observations: Observations) -> Incumbent | None:
    """The best configuration; None while no run keeps every constraint."""
    best: Incumbent | None = None
    for seen in median_runs(observations):
        if seen.outcome.end is End.FINISHED:
            value = problem.answer_value(seen.row, seen.outcome.seconds, seen.outcome.metrics)
            if value is not None and (best is None or value < best.value):
                best = Incumbent(seen.row, value, seen)
    return best


def incumbents(problem: Problem, observations: Observations) -> list[Incumbent | None]:
    """The incumbent after each trial, in the order of settling."""
    runs: dict[int, list[Observation]] = {}
    first: dict[int, int] = {}
    known: dict[int, Incumbent] = {}
    best: Incumbent | None = None
    found: list[Incumbent | None] = []

    def order(one: Incumbent) -> tuple[float, bool, int]:
        """Of equal values, configurations that ran once come first, then those that ran earlier, as in `incumbent`."""
        return one.value, len(runs[one.row]) > 1, first[one.row]

    for seen in observations:
        row = seen.row
        if seen.outcome.end is not End.FAILED:
            runs.setdefault(row, []).append(seen)
            first.setdefault(row, len(first))
            known.pop(row, None)
            if (now := incumbent(problem, tuple(runs[row]))) is not None:
                known[row] = now
            if best is not None and best.row == row:  # it was run again, and may have lost its place
                best = min(known.values(), key=order, default=None)
            elif now is not None and (best is None or order(now) < order(best)):
                best = now
        found.append(best)
    return found


def median_runs(observations: Observations) -> Observations:
    """The observations in which a configuration that finished several times appears once, as its median run.

    A repeated run that was stopped counts as slower than all others; when it is the median, the configuration has no finished run.
    """
    if len(observations) < 2:
        return observations
    runs: dict[int, list[Observation]] = {}
    for seen in observations:
        if seen.outcome.end is not End.FAILED:
            runs.setdefault(seen.row, []).append(seen)
    several = {row: seen for row, seen in runs.items() if len(seen) > 1 and _finished(seen)}
    if not several:
        return observations
    kept = [seen for seen in observations if seen.row not in several or seen.outcome.end is End.FAILED]
    return (*kept, *(_median(same) for same in several.values()))


def _median(same: list[Observation]) -> Observation:
    """The median of several runs of one configuration, at least one of them finished."""
    finished = _finished(same)
    times = [one.outcome.seconds if one.outcome.end is End.FINISHED else math.inf for one in same]
    middle = median_high(times)  # of two runs the slower one: a single fast run proves nothing
    if math.isinf(middle):
        return next(one for one in same if one.outcome.end is End.TIMEOUT)
    names = set.intersection(*(set(one.outcome.metrics) for one in finished))
    metrics = {name: median_low([one.outcome.metrics[name] for one in finished]) for name in sorted(names)}
    example = next(one for one in finished if one.outcome.seconds == middle)
    return replace(example, outcome=replace(example.outcome, metrics=metrics))


def _finished(runs: Iterable[Observation]) -> list[Observation]:
    return [seen for seen in runs if seen.outcome.end is End.FINISHED]
