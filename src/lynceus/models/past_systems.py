"""Models of published systems that learn from earlier jobs: PARIS, Quasar and Paragon, OtterTune, Karasu.

Each predicts the logarithm of the time, and of every metric, from what the past jobs say of all configurations (`past_curves`) and from the
runs of this job. Without a history, every row is predicted to take the average so far.

Shapes: j past jobs, q configurations, n runs of this job.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models import _kernel
from lynceus.models._kernel import Growth, Observed
from lynceus.models.features import log_price, standard_inputs
from lynceus.models.past_curves import metric_curve, time_curves
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.models.transfer import Process, fitted

if TYPE_CHECKING:
    from lynceus.problem.history import PastJob
    from lynceus.problem.problem import Problem
    from lynceus.space.column import FloatArray, IntArray
    from lynceus.space.table import Space

_SHORTEST_S = 1e-3
_LEAST_STD = 0.05


def past_logs(problem: Problem, metric: str | None = None) -> FloatArray:
    """ln time, or the logarithm of a metric, of every past job at every configuration `[j, q]`; jobs that tell it all."""
    return _past_logs(problem.space, problem.history, problem.goal.metrics, metric)


@lru_cache(maxsize=64)
def _past_logs(space: Space, history: tuple[PastJob, ...], needed: tuple[str, ...], metric: str | None) -> FloatArray:
    found = []
    for job in history:
        times = [curve for curve in time_curves(space, job) if curve.factor == 1.0]
        told = {name: metric_curve(space, job, name) for name in {*needed, *([metric] if metric else [])}}
        if not times or any(told[name] is None for name in needed):
            continue
        curve = times[0] if metric is None else told[metric]
        if curve is not None:
            found.append(curve.mean)
    return np.array(found).reshape(len(found), len(space))


@dataclass(frozen=True)
class PastModel(ABC):
    """Predicts this job from past ones, target by target; subclasses say how."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """Moments of the logarithm of every target in every state."""
        names = (None, *state.problem.metrics)
        mean = np.empty((len(state), len(state.open), len(names)))
        std = np.empty_like(mean)
        for i in range(len(state)):
            rows = np.concatenate([state.rows, state.imagined_rows[i]])
            for target, name in enumerate(names):
                own = np.maximum(state.seconds, _SHORTEST_S) if target == 0 else state.metrics[:, target - 1]
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs = np.concatenate([np.log(own), state.imagined_targets[i, :, target]])
                known = np.isfinite(logs)
                moments = self._predicted(state, past_logs(state.problem, name), rows[known], logs[known], seed)
                mean[i, :, target], std[i, :, target] = moments
        return Prediction("log time", mean, np.maximum(std, _LEAST_STD), logs=(True,) * (len(names) - 1))

    def _predicted(
        self, state: State, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        if len(past) and len(rows):
            return self.moments(state.problem.space, past, rows, logs, seed)
        level = float(logs.mean()) if len(logs) else float(past.mean()) if len(past) else 0.0
        shape = (past - past.mean(axis=1, keepdims=True)).mean(axis=0) if len(past) else np.zeros(len(state.open))
        return level + shape, np.ones(len(state.open))

    @abstractmethod
    def moments(
        self, space: Space, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and std of every row `[q]` from past jobs `[j, q]` and runs at `rows [n]`."""


@dataclass(frozen=True)
class FingerprintForest(PastModel):
    """PARIS (Yadwadkar et al. 2017): a random forest over past jobs, whose inputs are a configuration and what the first runs took."""

    trees: int = 100
    references: int = 2
    """How many first runs are the fingerprint."""

    def moments(
        self, space: Space, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """The forest's mean and spread, relative to the first reference run."""
        marks = rows[: self.references]
        inputs = standard_inputs(space)
        j, q = past.shape
        every = np.vstack([past, np.zeros((1, q))])
        prints = np.vstack([past[:, marks], logs[None, : self.references]])
        relative = prints[:, 1:] - prints[:, :1]
        features = np.hstack([np.repeat(np.hstack([prints, relative]), q, axis=0), np.tile(inputs, (j + 1, 1))])
        target = (every - prints[:, :1]).ravel()[: j * q]
        random = generator(seed, "fingerprint forest")
        bags = random.multinomial(j * q, np.full(j * q, 1.0 / (j * q)), size=(1, self.trees)).astype(np.int32)
        seeds = random.integers(0, 2**64, size=(1, self.trees), dtype=np.uint64)
        growth = Growth(max(1, features.shape[1] // 3), 0.0, 0.0, 2, "best", "between")
        observed = Observed(np.arange(j * q), target[None], bags, seeds)
        mean, std = _kernel.predict(_kernel.encode(features), observed, None, growth)
        return mean[0, j * q :, 0] + logs[0], std[0, j * q :, 0]


@dataclass(frozen=True)
class MatrixFactors(PastModel):
    """Paragon, Quasar, HCloud (Delimitrou and Kozyrakis): collaborative filtering of jobs × configurations by a low-rank factorisation."""

    rank: int = 3
    ridge: float = 0.1

    def moments(
        self, space: Space, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """ln T = level + average shape + Σ factors: loadings from the runs of this job by ridge regression."""
        shapes = past - past.mean(axis=1, keepdims=True)
        average = shapes.mean(axis=0)
        _, singular, right = np.linalg.svd(shapes - average, full_matrices=False)
        rank = min(self.rank, int((singular > 1e-9).sum()))
        factors = (singular[:rank, None] * right[:rank] / np.sqrt(len(past))).T
        design = np.hstack([np.ones((len(rows), 1)), factors[rows]])
        pull = np.diag([1e-6, *[self.ridge] * rank])
        loads = np.linalg.solve(design.T @ design + pull, design.T @ (logs - average[rows]))
        left = logs - average[rows] - design @ loads
        spread = np.sqrt(np.square(left).sum() / max(len(rows) - 1, 1) + 0.2**2)
        return average + np.hstack([np.ones((len(average), 1)), factors]) @ loads, np.full(len(average), spread)


@dataclass(frozen=True)
class NearestPast(PastModel):
    """OtterTune (Van Aken et al. 2017): the nearest past workload by what the runs so far took, and the own runs in one process."""

    bend: float = 0.4

    def moments(
        self, space: Space, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """A Gaussian process around the nearest past job."""
        gaps = logs - past[:, rows]
        distance = (
            np.square(gaps - gaps.mean(axis=1, keepdims=True)).mean(axis=1) if len(rows) > 1 else np.abs(gaps[:, 0])
        )
        nearest = int(np.argmin(distance))
        ones = np.ones((1, past.shape[1]))
        process = Process(past[nearest] + gaps[nearest].mean(), 0.5 * ones, self.bend, 0.0 * ones[0])
        return _marginals(process, space, rows, logs)


@dataclass(frozen=True)
class RankedEnsemble(PastModel):
    """Karasu (Scheinert et al. 2023): models of past jobs and of this one, weighted by how well each ranks the runs so far (RGPE).

    The weight of a model is how often it has the smallest ranking loss over resampled runs; the own model is judged by leaving runs out.
    """

    samples: int = 64
    bend: float = 0.6

    def moments(
        self, space: Space, past: FloatArray, rows: IntArray, logs: FloatArray, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances weighted; past models are shifted to the level of the runs."""
        n, q = len(rows), past.shape[1]
        own = _own(space, self.bend, float(logs.mean()), q)
        held = np.array([_marginals(own, space, np.delete(rows, i), np.delete(logs, i))[0][rows[i]] for i in range(n)])
        guesses = np.vstack([past[:, rows], held])
        wrong = (guesses[:, :, None] < guesses[:, None, :]) != (logs[:, None] < logs[None, :])
        random, wins = generator(seed, "ranked ensemble", n), np.zeros(len(guesses))
        for _ in range(self.samples):
            drawn = random.integers(0, n, n)
            loss = wrong[:, drawn][:, :, drawn].sum(axis=(1, 2))
            best = np.flatnonzero(loss == loss.min())
            wins[best[-1] if len(guesses) - 1 in best else random.choice(best)] += 1
        share = wins / wins.sum()
        mean, std = _marginals(own, space, rows, logs)
        shifts = (logs - past[:, rows]).mean(axis=1)
        total = share[-1] * mean + share[:-1] @ (past + shifts[:, None])
        return total, np.sqrt(np.square(share[-1] * std) + np.square(share[:-1]).sum() * 0.3**2)


def _own(space: Space, bend: float, level: float, q: int) -> Process:
    parts = np.stack([np.full(q, 0.7), 0.45 * log_price(space)])
    return Process(level - 0.5 * log_price(space), parts, bend, np.zeros(q))


def _marginals(process: Process, space: Space, rows: IntArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    fit = fitted(process, space, rows, logs, np.zeros(len(rows), dtype=bool))
    mean, covariance = fit.moments(space, np.arange(len(process.mean)))
    return mean, np.sqrt(np.maximum(np.diag(covariance), 1e-9))
