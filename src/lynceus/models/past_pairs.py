"""Scout's idea (Hsu et al. 2018): runs of other jobs show in which direction to move, given which resource limited a run.

Every pair of runs (i, j) of one past job is an example: how much more of each resource j had, and what i reported about processors,
memory and disks → how much longer or shorter j took. Resources are compared by their logarithms,

    ln T_j − ln T_i = Σ_k Δ_k (a_k + b_k · metrics_i),        Δ = ln resources_j − ln resources_i,

so that what was learnt on single machines applies to clusters. Coefficients are learnt from other jobs alone; predictions start from
the runs of the job itself, with more weight on nearer runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.errors import InputError
from lynceus.models.features import log_price, standard_inputs
from lynceus.models.past_curves import time_curves
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.space.column import FloatArray, IntArray

if TYPE_CHECKING:
    from lynceus.problem.history import PastJob
    from lynceus.problem.problem import Problem
    from lynceus.space.table import Space

_SHORTEST_S = 1e-3
_FARTHEST = 2.0
"""Reported metrics are clipped at this many standard deviations: the load of a cluster may be unlike anything in the past."""
_LEAST_STD = 1e-6


@dataclass(frozen=True, eq=False)
class PastRuns:
    """Runs of other jobs, and the same resources of the configurations of this job."""

    job: IntArray
    """Which job each run belongs to `[n]`."""
    resources: FloatArray
    """Logarithms of what each run had `[n, k]`: cores, price per core, …"""
    seconds: FloatArray
    """How long it took `[n]`."""
    metrics: FloatArray
    """What it reported `[n, m]`; NaN for missing metrics."""
    names: tuple[str, ...]
    """The names of these metrics."""
    here: FloatArray
    """Logarithms of the same resources of every configuration of this job `[q, k]`."""

    def __post_init__(self) -> None:
        n, k = self.resources.shape
        if len(self.job) != n or len(self.seconds) != n or self.metrics.shape != (n, len(self.names)):
            raise InputError(
                f"past: got {n} runs with {len(self.seconds)} times and metrics of shape {self.metrics.shape}; "
                "give every run its job, its time and one number per metric."
            )
        if self.here.shape[1] != k:
            raise InputError(
                f"past: runs have {k} resources and configurations {self.here.shape[1]}; compare the same ones."
            )
        if not (np.isfinite(self.resources).all() and np.isfinite(self.here).all() and (self.seconds > 0).all()):
            raise InputError("past: a run has a resource or a time that is not above 0; leave such runs out.")
        if len(np.unique(self.job)) < 2:
            raise InputError("past: runs of at least two other jobs are needed to learn what they have in common.")


@dataclass(frozen=True, slots=True)
class PastPairs:
    """Time predicted from the runs so far, by what runs of other jobs show about moving from one configuration to another."""

    past: PastRuns | None = None
    """Runs of other jobs; a replay sets those that its job file names. None: the history of the problem; where it has none, every row
    is predicted to take the average time so far."""
    members: int = 20
    """How many sets of coefficients are learnt, each from past jobs drawn with replacement; their spread is the uncertainty."""
    pull: float = 10.0
    """Strength of the ridge on every coefficient, in average jobs."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """ln seconds of every row in every state; metrics are predicted as their average so far."""
        if self.past is None and (known := runs_of_history(state.problem)) is not None:
            return replace(self, past=known)(state, seed)
        if not len(state.rows):
            raise ValueError("past pairs need at least one observation; put an initial design before the planner")
        if self.past is not None and len(self.past.here) != len(state.open):
            raise InputError(
                f"past: {len(self.past.here)} configurations are described, but the job has {len(state.open)}; "
                "describe each of them."
            )
        learnt = None if self.past is None else _learn(self.past, self.members, self.pull)
        moments = [self._moments(state, i, learnt) for i in range(len(state))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Prediction("log time", mean, std)

    def _moments(self, state: State, i: int, learnt: _Learnt | None) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one state, its imagined runs included."""
        rows = np.concatenate([state.rows, state.imagined_rows[i]])
        logs = np.concatenate([np.log(np.maximum(state.seconds, _SHORTEST_S)), state.imagined_targets[i, :, 0]])
        target = np.vstack([state.metrics, state.imagined_targets[i, :, 1:]])
        mean = np.empty((len(state.open), 1 + target.shape[1]))
        std = np.empty_like(mean)
        if learnt is None or self.past is None:
            mean[:, 0], std[:, 0] = logs.mean(), max(float(logs.std()), 1.0)
        else:
            mean[:, 0], std[:, 0] = _moved(self.past, learnt, rows, logs, reported_metrics(state, self.past, rows))
        for metric in range(target.shape[1]):
            known = target[np.isfinite(target[:, metric]), metric]
            mean[:, 1 + metric] = known.mean() if len(known) else 0.0
            std[:, 1 + metric] = max(float(known.std()), _LEAST_STD) if len(known) else 1.0
        return mean, std


def runs_of_history(problem: Problem) -> PastRuns | None:
    """The history of a problem as past runs, without low-level metrics; None where it has fewer than two jobs that can be compared."""
    return _runs_of(problem.space, problem.history)


@lru_cache(maxsize=32)
def _runs_of(space: Space, history: tuple[PastJob, ...]) -> PastRuns | None:
    logs = [curve.mean for job in history for curve in time_curves(space, job) if curve.factor == 1.0]
    if len(logs) < 2:
        return None
    here = np.column_stack([standard_inputs(space), log_price(space)])
    jobs = np.repeat(np.arange(len(logs)), len(space))
    return PastRuns(
        jobs, np.tile(here, (len(logs), 1)), np.exp(np.concatenate(logs)), np.zeros((len(jobs), 0)), (), here
    )


def reported_metrics(state: State, past: PastRuns, rows: IntArray) -> FloatArray:
    """What the run of each row reported, by the names of the past `[n, m]`; NaN for missing metrics."""
    seen = {one.row: one.outcome.metrics for one in state.observations if one.outcome.metrics}
    table = [[seen.get(int(row), {}).get(name, np.nan) for name in past.names] for row in rows]
    return np.array(table, dtype=float).reshape(len(rows), len(past.names))


def _moved(
    past: PastRuns, learnt: _Learnt, rows: IntArray, logs: FloatArray, reported: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and std of ln seconds at every row `[q]`, from runs at `rows [n]`: each predicts all rows, near ones weigh more."""
    gaps = past.here[np.newaxis] - past.here[rows][:, np.newaxis]
    moves = np.einsum("nqf,hf->hnq", pair_examples(gaps, learnt.scale.scaled(reported)), learnt.weights, optimize=True)
    precision = 1.0 / (learnt.variance * np.square(gaps).sum(axis=2) + _LEAST_STD**2)
    guesses = ((logs[:, np.newaxis] + moves) * precision).sum(axis=1) / precision.sum(axis=0)
    return guesses.mean(axis=0), np.sqrt(guesses.var(axis=0) + 1.0 / precision.sum(axis=0))


@dataclass(frozen=True, eq=False)
class MetricScale:
    """Mean and standard deviation of the logarithm of every metric over past runs `[m]`."""

    middle: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, past: PastRuns) -> MetricScale:
        """Over all past runs; a metric that never varies has the spread 1."""
        flat = _log_scale(past.metrics)
        known = np.isfinite(flat)
        count = np.maximum(known.sum(axis=0), 1)
        middle = np.where(known, flat, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, np.square(flat - middle), 0.0).sum(axis=0) / count)
        return cls(middle, np.where(spread > 0, spread, 1.0))

    def scaled(self, metrics: FloatArray) -> FloatArray:
        """Metrics scaled to mean 0 and std 1 over the past; 0 for missing ones."""
        with np.errstate(invalid="ignore"):
            scaled = np.clip((_log_scale(metrics) - self.middle) / self.spread, -_FARTHEST, _FARTHEST)
        return np.where(np.isfinite(scaled), scaled, 0.0)


@dataclass(frozen=True, eq=False)
class _Learnt:
    """What was learnt from past jobs."""

    weights: FloatArray
    """Coefficients of every member `[h, f]`."""
    variance: float
    """Variance of ln time per squared distance between two configurations, measured on jobs that were left out."""
    scale: MetricScale


@lru_cache(maxsize=32)
def _learn(past: PastRuns, members: int, pull: float) -> _Learnt:
    """Coefficients from pairs of runs, with every job weighted equally; cached, because the past does not change."""
    scale = MetricScale.of(past)
    jobs = [_Job.of(past, past.job == name, scale) for name in np.unique(past.job)]
    gram, aim = np.stack([job.gram for job in jobs]), np.stack([job.aim for job in jobs])
    random = generator(0, "past")
    weights, errors, gaps = [], 0.0, 0.0
    for _ in range(members):
        drawn = random.integers(0, len(jobs), len(jobs))
        ridge = pull / len(jobs) * np.eye(gram.shape[1])
        one = np.linalg.solve(gram[drawn].mean(axis=0) + ridge, aim[drawn].mean(axis=0))
        weights.append(one)
        for place in np.setdiff1d(np.arange(len(jobs)), drawn):
            left = jobs[place]
            errors += left.squares - 2 * float(one @ left.aim) + float(one @ left.gram @ one)
            gaps += left.distance
    return _Learnt(np.stack(weights), errors / max(gaps, 1e-12), scale)


@dataclass(frozen=True, eq=False)
class _Job:
    """All pairs of runs of one past job, summed up: averages of x xᵀ, x y, y² and squared distances."""

    gram: FloatArray
    aim: FloatArray
    squares: float
    distance: float

    @classmethod
    def of(cls, past: PastRuns, mine: np.ndarray[tuple[int], np.dtype[np.bool_]], scale: MetricScale) -> _Job:
        resources, logs = past.resources[mine], np.log(past.seconds[mine])
        gaps = (resources[np.newaxis] - resources[:, np.newaxis]).reshape(-1, resources.shape[1])
        metrics = np.repeat(scale.scaled(past.metrics[mine]), len(logs), axis=0)
        examples = pair_examples(gaps[:, np.newaxis], metrics)[:, 0]
        target = (logs[np.newaxis] - logs[:, np.newaxis]).ravel()
        n = max(len(target), 1)
        return cls(
            examples.T @ examples / n,
            examples.T @ target / n,
            float(np.square(target).mean()),
            float(np.square(gaps).sum(axis=1).mean()),
        )


def pair_examples(gaps: FloatArray, metrics: FloatArray) -> FloatArray:
    """Every gap alone, and times every metric of the run that it starts from: `[n, q, k]`, `[n, m]` → `[n, q, k (1 + m)]`."""
    factors = np.hstack([np.ones((len(metrics), 1)), metrics])
    product = gaps[:, :, :, np.newaxis] * factors[:, np.newaxis, np.newaxis, :]
    return np.asarray(product.reshape(*gaps.shape[:2], -1))


def _log_scale(metrics: FloatArray) -> FloatArray:
    """Logarithms, because rates and sizes range over orders of magnitude."""
    return np.log1p(np.maximum(metrics, 0.0))
