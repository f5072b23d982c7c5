"""The time and the metrics of a job on any input, also on one that never ran, learnt from its runs on other inputs.

One set of runs serves every input: `InputModel.fit` learns how time depends on the configuration and grows with the input
(`lynceus.models.input_process`), `InputModel.at` predicts. An input that has a name instead of a size has a level of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.blas import one_thread
from lynceus.models.features import log_price
from lynceus.models.input_coordinates import coordinates
from lynceus.models.input_process import NOISES, InputProcess, Places, Prior
from lynceus.models.prediction import Prediction
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.trial.outcome import Observation, Observations, TrainingTarget

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray, IntArray
    from lynceus.space.table import Space

_PRICE_SLOPE = (-0.5, 0.45)
"""Mean and std of the slope of ln time along ln price, as in the default policy's model."""
GROWTH = (0.85, 0.2)
"""Mean and std of the growth of time with the size: a little less than proportional, because starting costs time that does not grow."""
WEAK_SCALING = (0.1, 0.2)
"""The growth that is left when the machines grow with the size: a little, because more of them wait for each other."""
_OTHER_GROWTH = (0.3, 0.5)
"""The same for other numbers, which may matter or not. Metrics grow by 0 ± the latter."""
_DEADLINE_STD = 0.5
"""How far the time of an average configuration lies from the deadline, in ln seconds, as in the default policy's model."""
_MOST_RUNS = 250
"""The newest runs from which is learnt: the time grows with their cube."""
_SHORTEST_S = 1e-3
_STEP = 1.1
"""Factor over which growth is looked at."""


@dataclass(frozen=True, eq=False)
class AtInput:
    """What is believed of runs on one input."""

    input: JobInput
    prediction: Prediction
    """Of a *run* of every configuration: its std holds the noise of runs, too."""
    growth: float
    """By how many percent time grows with 1 % more data, in the mean of all configurations; NaN where no size is known."""


def predict_at_input(problem: Problem, observations: Observations, target: JobInput) -> AtInput | None:
    """Time and metrics of a run of every configuration on the input `target`; None as long as no run has ended."""
    model = InputModel.fit(problem, observations)
    return None if model is None else model.at(target)


@dataclass(frozen=True, eq=False)
class InputModel:
    """What the runs of a job tell about all its inputs.

    >>> import lynceus
    >>> space = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4, 8])], price="0.1 * nodes")
    >>> study = lynceus.create_study(space=space, input="100 GB")
    >>> study.add_trials([({"nodes": nodes}, 60 + 2400 / nodes, {}) for nodes in (1, 2, 4, 8)])
    >>> model = InputModel.fit(study.problem, study.observations)
    >>> seconds = model.at(JobInput.read("100 GB")).prediction.seconds(study.problem)[0]
    >>> [abs(float(found) / (60 + 2400 / nodes) - 1) < 0.05 for found, nodes in zip(seconds, (1, 2, 4, 8))]
    [True, True, True, True]
    """

    problem: Problem
    runs: tuple[Observation, ...]
    names: tuple[str, ...]
    """Numbers that every input has that ran."""
    middle: FloatArray
    """ln of the middle of each number `[j]`."""
    time: InputProcess
    metrics: tuple[tuple[InputProcess | None, bool, float], ...]
    """Of each metric: its process (None: no run reported it), whether it models the logarithm, and the unit of its values."""

    @classmethod
    def fit(cls, problem: Problem, observations: Observations) -> InputModel | None:
        """Learn from the runs that ended; None while there are none. Where no run says what it read, there are no numbers."""
        known = tuple(seen for seen in observations if seen.target is not None)[-_MOST_RUNS:]
        if not known:
            return None
        inputs = [_input_of(seen) for seen in known]
        names = tuple(name for name in inputs[-1].numbers if all(name in one.numbers for one in inputs))
        logs = np.array([[math.log(one.numbers[name]) for name in names] for one in inputs]).reshape(len(known), -1)
        middle = (logs.min(axis=0) + logs.max(axis=0)) / 2.0
        rows = np.array([seen.row for seen in known], dtype=np.int64)
        places = _places(problem.space, rows, logs - middle, _labels(inputs, inputs), names)
        told: list[TrainingTarget] = [seen.target for seen in known if seen.target is not None]
        stopped = np.array([one.censored for one in told], dtype=bool)
        seconds = np.array([one.bound_s if one.censored and one.bound_s > 0 else one.seconds for one in told])
        with one_thread():
            time = InputProcess.fit(
                places, np.log(np.maximum(seconds, _SHORTEST_S)), stopped, _time_prior(problem, names)
            )
            metrics = tuple(
                _metric(places, names, [one.metrics.get(name, math.nan) for one in told]) for name in problem.metrics
            )
        return cls(problem, known, names, middle, time, metrics)

    def at(self, target: JobInput) -> AtInput:
        """What is believed of runs on `target`; numbers that it does not give are taken from the middle of what ran."""
        rows, places = len(self.problem.space), self._places(target)
        with one_thread():
            moments = [self._time_at(int(places.labels[0])).predict(places)]
            for process, _, unit in self.metrics:
                mean, std = (np.zeros(rows), np.ones(rows)) if process is None else process.predict(places)
                moments.append((mean * unit, std * unit))
        mean, std = (np.stack(parts, axis=1)[None] for parts in zip(*moments, strict=True))
        prediction = Prediction("log time", mean, std, logs=tuple(log for _, log, _ in self.metrics))
        return AtInput(target, prediction, self._growth(target))

    def _growth(self, target: JobInput) -> float:
        """The slope of ln time over ln size at an input."""
        if SIZE not in self.names or SIZE not in target.numbers:
            return math.nan
        with one_thread():
            less, more = (self.time.predict(self._places(target.grown(each)))[0] for each in (1 / _STEP, _STEP))
        return float(np.mean(more - less) / (2 * math.log(_STEP)))

    def _places(self, target: JobInput) -> Places:
        """All configurations on an input."""
        space, names = self.problem.space, self.names
        given = [math.log(target.numbers[name]) if name in target.numbers else math.nan for name in names]
        own = np.nan_to_num(np.array(given, dtype=float) - self.middle)
        label = _labels([_input_of(seen) for seen in self.runs], [target])[0]
        numbers, labels = np.tile(own, (len(space), 1)), np.full(len(space), label)
        return _places(space, np.arange(len(space)), numbers, labels, names)

    def _time_at(self, label: int) -> InputProcess:
        """The process of ln time. Where no number tells how large the target is, its deadline does.

        Users choose deadlines that some configurations meet and others do not: it counts like a run of an average configuration.
        """
        deadline_s, time = self.problem.deadline_s, self.time
        if self.names or label in time.runs.labels or not 0 < deadline_s < math.inf:
            return time
        told = [seen.target for seen in self.runs if seen.target is not None]
        stopped = np.array([*(one.censored for one in told), False])
        seconds = [one.bound_s if one.censored and one.bound_s > 0 else one.seconds for one in told]
        y = np.log(np.maximum([*seconds, deadline_s], _SHORTEST_S))
        doubt = np.append(np.zeros(len(told)), _DEADLINE_STD**2)
        return InputProcess.fit(time.runs.and_average(label), y, stopped, time.prior, doubt)


def _input_of(seen: Observation) -> JobInput:
    return seen.order.input or JobInput()


def _labels(known: Sequence[JobInput], wanted: Sequence[JobInput]) -> IntArray:
    """A code for the names of each wanted input: −1 without names, a new one for names that are not known."""
    codes = {names: place for place, names in enumerate(dict.fromkeys(one.texts for one in known)) if names}
    return np.array([codes.get(one.texts, len(known)) if one.texts else -1 for one in wanted], dtype=np.int64)


def _places(space: Space, rows: IntArray, numbers: FloatArray, labels: IntArray, names: Sequence[str]) -> Places:
    """Configurations `rows [n]`, each on the input with these centred logarithms `[n, j]`."""
    found = coordinates(space)
    size = numbers[:, names.index(SIZE)] if SIZE in names else np.zeros(len(rows))
    points, price = found.points[rows], log_price(space)[rows]
    return Places(
        points,
        points + np.outer(size, found.shift),
        price,
        price - size if found.price_moves else price,
        numbers,
        labels,
    )


def _time_prior(problem: Problem, names: Sequence[str]) -> Prior:
    """Where runs do not vary, a slow neighbour says nothing against a fast run."""
    growth = tuple(GROWTH if name == SIZE else _OTHER_GROWTH for name in names)
    scaled = tuple(WEAK_SCALING if name == SIZE else _OTHER_GROWTH for name in names)
    moved = scaled if coordinates(problem.space).price_moves else growth
    return Prior(_PRICE_SLOPE, growth, moved, NOISES[:1] if problem.deterministic else NOISES)


def _metric(places: Places, names: Sequence[str], values: Sequence[float]) -> tuple[InputProcess | None, bool, float]:
    """A metric, by its logarithm where all values are positive."""
    told = np.array(values, dtype=float)
    which: BoolArray = np.isfinite(told)
    if not which.any():
        return None, False, 1.0
    log = bool((told[which] > 0).all())
    target = np.log(told[which]) if log else told[which]
    unit = 1.0 if log else max(float(target.std()), 1e-9 * float(np.abs(target).max()), 1e-12)
    growth = ((0.0, _OTHER_GROWTH[1]),) * len(names)
    prior = Prior((0.0, _PRICE_SLOPE[1]), growth, growth)
    return InputProcess.fit(places.only(which), target / unit, np.zeros(int(which.sum()), dtype=bool), prior), log, unit
