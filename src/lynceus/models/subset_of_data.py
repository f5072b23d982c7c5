"""A model that is trained on some of the runs: those that matter for the next decision.

A Gaussian process over n runs takes n³ steps, but a prediction depends on few of them: near a candidate, close runs hide distant ones.
So the model is trained twice. A pilot learns from the best runs and from runs spread over the whole space. Where it sees a chance to
improve on the incumbent, the final model also gets the nearest runs: those that tell whether the chance is real. ("Subset of data",
Rasmussen and Williams 2006, section 8.3.1, with a subset that follows the acquisition function.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from lynceus.models.distribution import Normal
from lynceus.models.features import model_inputs
from lynceus.models.gaussian.kernel import Inputs
from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State, feasible_runs
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.space.table import Space

_PILOT = 2
"""The pilot is trained on one in so many of the runs that the final model gets."""
_COMPETITIVE = 4
"""One in so many runs of the pilot is among the best; the others are spread over the space."""
_LATEST = 4
"""So many of the latest runs are always kept: the model must not forget what it has just been told."""
_CANDIDATES = 64
"""Promising rows whose nearest runs are added, round by round."""
_UNLIKE = 0.5
"""Distance of two categories, in ranges of a numeric feature divided by the root of their number."""


@dataclass(frozen=True)
class SubsetOfData:
    """A surrogate that is trained on at most `most` runs; with that many or fewer it is the surrogate itself."""

    surrogate: Surrogate
    most: int = 128

    def __post_init__(self) -> None:
        if self.most < 16:
            raise ValueError(f"a model needs some runs to learn from; most is {self.most}, give 16 or more")

    def __call__(self, state: State, seed: int) -> Prediction:
        """The surrogate's prediction from the runs that matter; imagined runs count in addition."""
        if len(state.rows) <= self.most:
            return self.surrogate(state, seed)
        return self.surrogate(_trained_on(state, training_subset(state, self.surrogate, self.most, seed)), seed)


def training_subset(state: State, surrogate: Surrogate, most: int, seed: int) -> IntArray:
    """Which of the state's runs the model is trained on, in order `[m]`.

    All states that were imagined from one real state get the same subset.
    """
    return _subset(_Known.of(state, surrogate, most, seed))


@dataclass(frozen=True)
class _Known:
    """What the choice of a subset depends on: the model, and the real part of a state, compared by value."""

    surrogate: Surrogate
    most: int
    seed: int
    space: Space
    digest: bytes
    state: State = field(compare=False)
    """One real state, without imagined runs."""

    @classmethod
    def of(cls, state: State, surrogate: Surrogate, most: int, seed: int) -> _Known:
        problem = state.problem
        best = min((value for _, value in feasible_runs(problem, state.observations)), default=np.nan)
        real = replace(
            state.part(slice(0, 1)),
            best=np.array([best]),
            current=np.array([-1]),
            imagined_rows=np.zeros((1, 0), dtype=np.int64),
            imagined_targets=np.zeros((1, 0, state.targets)),
        )
        digest = hashlib.blake2b(repr((problem.objective, problem.constraints)).encode())
        cost = problem.run_costs.of(np.ones(len(problem.space)))
        for part in (state.rows, state.seconds, state.metrics, state.bound_s, state.open, real.best, cost):
            digest.update(np.ascontiguousarray(part).tobytes())
        return cls(surrogate, most, seed, problem.space, digest.digest(), real)


@lru_cache(maxsize=8)
def _subset(known: _Known) -> IntArray:
    """The runs of the pilot, then in turn the nearest, second nearest, … run of each promising row."""
    state, most = known.state, known.most
    pilot = _pilot(state, most // _PILOT)
    prediction = known.surrogate(_trained_on(state, np.sort(pilot)), known.seed)
    promise = np.where(state.open, _promise(prediction, state), -np.inf)
    rows = np.argsort(-promise, kind="stable")[:_CANDIDATES]
    # No row needs more of its nearest runs than can be added.
    nearest = np.argsort(_distances(known.space, rows, state.rows), axis=1, kind="stable")[:, :most]
    chosen = np.array(list(dict.fromkeys([*pilot.tolist(), *nearest.T.ravel().tolist()]))[:most], dtype=np.int64)
    return np.sort(chosen)


def _trained_on(state: State, some: IntArray) -> State:
    """The state of a model that knows only some of the runs."""
    return replace(
        state,
        rows=state.rows[some],
        seconds=state.seconds[some],
        metrics=state.metrics[some],
        bound_s=state.bound_s[some],
    )


def _pilot(state: State, size: int) -> IntArray:
    """The latest runs (results expected of pending ones included), the best, and runs that are far from all others chosen."""
    ended, count = sum(seen.target is not None for seen in state.observations), len(state.rows)
    first = max(ended - _LATEST, count - size // 2)
    chosen = [*_best_runs(state, ended, size // _COMPETITIVE).tolist(), *range(count - 1, first - 1, -1)]
    chosen = list(dict.fromkeys(chosen))
    gap = _distances(state.problem.space, state.rows[chosen], state.rows).min(axis=0)
    while len(chosen) < size and gap.max() > 0.0:
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(gap, _distances(state.problem.space, state.rows[chosen[-1:]], state.rows)[0])
    return np.array(chosen, dtype=np.int64)


def _best_runs(state: State, ended: int, count: int) -> IntArray:
    """Of the first `ended` runs, the finished ones with the best objective; those that break a limit on time or cost come last."""
    problem = state.problem
    finished = np.flatnonzero(np.isnan(state.bound_s[:ended]))
    rows, seconds = state.rows[finished], state.seconds[finished]
    if problem.kind == "metric":
        reported = state.metrics[finished, problem.metrics.index(problem.objective.metric)]
        value = -reported if problem.objective.maximise else reported
    else:
        value = problem.run_costs.of(seconds, rows) if problem.kind == "cost" else seconds
    late = seconds > problem.ceiling_s[rows]
    return finished[np.lexsort((value, late))][:count]


def _promise(prediction: Prediction, state: State) -> FloatArray:
    """What a run of each row is expected to improve per dollar, roughly; only the order matters `[q]`."""
    problem = state.problem
    if problem.kind == "metric":
        metric = prediction.metric(problem.metrics.index(problem.objective.metric))
        objective = Normal(-metric.mean, metric.std) if problem.objective.maximise else metric
        best = float(state.best[0])
        improvement = np.ones(1) if np.isnan(best) else objective.put(best)[0]
        return np.asarray(improvement * prediction.feasible(problem)[0])
    timeouts_s = state.timeouts_s()
    charge, allowed = prediction.charge(state, timeouts_s)[0], np.where(np.isfinite(timeouts_s), timeouts_s, 0.0)
    limit = problem.run_costs.of(allowed) if prediction.form == "cost" else allowed
    saved = prediction.run().put(np.maximum(limit, 0.0))[0] * (1.0 if problem.kind == "time" else problem.price)
    saved = np.where(np.isfinite(timeouts_s[0]), saved, prediction.feasible(problem)[0])
    for constraint in problem.metric_constraints:
        saved = saved * prediction.meets(constraint, problem)[0]
    return np.asarray(saved / np.maximum(charge, 1e-12))


@lru_cache(maxsize=32)
def _inputs(space: Space) -> Inputs:
    return Inputs.of(*model_inputs(space, "sizes and price"))


def _distances(space: Space, left: IntArray, right: IntArray) -> FloatArray:
    """How unlike the configurations of two lists of rows are, `[l, r]`: as in the kernel, before anything is known of its lengths."""
    inputs = _inputs(space)
    square = np.zeros((len(left), len(right)))
    for feature in inputs.numeric.T:
        square += np.square(feature[left][:, np.newaxis] - feature[right])
    distance: FloatArray = np.sqrt(square / max(inputs.numeric.shape[1], 1))
    for feature in inputs.categorical.T:
        unlike: BoolArray = feature[left][:, np.newaxis] != feature[right]
        distance += _UNLIKE * unlike
    return distance
