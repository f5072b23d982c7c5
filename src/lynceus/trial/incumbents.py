"""The incumbent: the best configuration known so far, by the median of its runs. The one place that decides which it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median_high, median_low

from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observation, Observations
from lynceus.trial.present_input import on_present_input, present_runs


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
    for seen in median_runs(present_runs(problem, observations)):
        if seen.outcome.end is End.FINISHED:
            value = problem.answer_value(seen.row, seen.outcome.seconds, seen.outcome.metrics)
            if value is not None and (best is None or value < best.value):
                best = Incumbent(seen.row, value, seen)
    return best


def incumbents(problem: Problem, observations: Observations) -> list[Incumbent | None]:
    """The incumbent after each trial, in the order of settling."""
    trail = IncumbentTrail(problem)
    return [trail.add(seen) for seen in observations]


class IncumbentTrail:
    """The incumbent while trials settle: each of them is looked at once, however many there are."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best: Incumbent | None = None
        """The incumbent by now."""
        self._runs: dict[int, list[Observation]] = {}
        self._first: dict[int, int] = {}
        self._known: dict[int, Incumbent] = {}

    def add(self, seen: Observation) -> Incumbent | None:
        """The incumbent after one more settled trial."""
        if seen.outcome.end is End.FAILED or not on_present_input(self.problem, seen):
            return self.best
        row, same = seen.row, self._runs.setdefault(seen.row, [])
        same.append(seen)
        self._first.setdefault(row, len(self._first))
        self._known.pop(row, None)
        if (now := incumbent(self.problem, tuple(same))) is not None:
            self._known[row] = now
        if self.best is not None and self.best.row == row:  # it was run again, and may have lost its place
            self.best = min(self._known.values(), key=self._order, default=None)
        elif now is not None and (self.best is None or self._order(now) < self._order(self.best)):
            self.best = now
        return self.best

    def _order(self, one: Incumbent) -> tuple[float, bool, int]:
        """Of equal values, configurations that ran once come first, then those that ran earlier, as in `incumbent`."""
        return one.value, len(self._runs[one.row]) > 1, self._first[one.row]


def representative(observations: Iterable[Observation], row: int) -> Observation | None:
    """The run that stands for a configuration: its only finished one, or the median of several; None when none finished."""
    same = [seen for seen in observations if seen.row == row and seen.outcome.end is not End.FAILED]
    finished = _finished(same)
    if not finished:
        return None
    middle = _median(same)
    return middle if middle.outcome.end is End.FINISHED else max(finished, key=lambda one: one.outcome.seconds)


def median_runs(observations: Observations) -> Observations:
    """The observations in which a configuration that finished several times appears once, as its median run.

    A repeated run that was stopped counts as slower than all others; when it is the median, the configuration has no finished run. One that
    was stopped before the fastest finished run ended (under an earlier, tighter limit) proves nothing, and does not count.
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
    fastest = min(one.outcome.seconds for one in finished)
    same = [one for one in same if one.outcome.end is End.FINISHED or one.outcome.seconds >= fastest]
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
