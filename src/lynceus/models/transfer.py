"""Learning from earlier jobs without trusting them.

Every past job is one hypothesis: this job's ln time is the past job's, shifted, scaled and bent a little,

    ln T(x) = a + b · m_j(x) + r(x),      a ~ N(0, 1),  b ~ N(1, 1/4²),  r a Gaussian process of std ρ,

where m_j is what a Gaussian process learnt from the runs of job j, read as it was or for another amount of data (see `past_curves`). One
further hypothesis says that the past tells nothing. The runs of this job weigh them by Bayes' rule: the weight of a hypothesis is its prior
weight times the probability density that it gave, one after the other, to the runs that were made. What cannot explain them loses its
weight, down to the prediction of the wrapped model alone.

Shapes: q configurations, n runs of this job, b states, e imagined runs of each, j past jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from lynceus.models.blas import one_thread
from lynceus.models.features import log_price, standard_inputs
from lynceus.models.interfaces import Surrogate
from lynceus.models.past_match import Curve, past_curves
from lynceus.models.prediction import Prediction
from lynceus.models.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lynceus.problem.history import PastJob
    from lynceus.space.column import FloatArray, IntArray
    from lynceus.space.table import Space

_SHORTEST_S = 1e-3
_OFFSET, _LEVEL, _SCALE = 1.0, 0.3, 0.25
"""Prior std of a, where its level is unknown (a factor of e either way) and where the amount of data explains it; and of b around 1."""
_BENDS = (0.1, 0.3)
"""Std of r: a sibling, and a relative."""
_ALONE = (0.4, 0.8)
"""Std of the local part of the hypothesis that the past tells nothing."""
_SLOPE, _SLOPE_STD, _CENTRE_STD = -0.5, 0.45, 0.5
"""That hypothesis has the priors of the default model: time falls with the price to the power of −0.5 ± 0.45 from about the deadline."""
_NOISE = 0.05
_LEAST_WEIGHT = 1e-3
"""Hypotheses below this share are left out of a prediction."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A Gaussian process of ln time: a mean, and a covariance of a few rank-one parts and a local one."""

    job: str
    """The past job; empty for the hypothesis that the past tells nothing."""
    prior: float
    """Its weight before any run."""
    mean: FloatArray
    """Prior mean `[q]`."""
    parts: FloatArray
    """Rank-one parts of the covariance: Σ_p parts_p(x) parts_p(x') `[p, q]`."""
    bend: float
    """Std of the local part."""
    doubt: FloatArray
    """Variance of the past's own prediction, independent between rows `[q]`."""

    def covariance(self, local: FloatArray, one: IntArray, other: IntArray) -> FloatArray:
        """Prior covariance of rows `one [r]` with rows `other [s]`; `local [r, s]` is the correlation of the local part."""
        same = one[:, None] == other[None]
        own = np.where(same, self.doubt[one][:, None], 0.0)
        return np.asarray(self.parts[:, one].T @ self.parts[:, other] + self.bend**2 * local + own)


@dataclass(frozen=True)
class Transfer:
    """A model of log time that also learns from the problem's history; without history, the wrapped model alone."""

    surrogate: Surrogate
    trust: float = 0.5
    """Prior probability that some past job resembles this one, if those past jobs resemble each other."""

    def __post_init__(self) -> None:
        if not 0 <= self.trust < 1:
            raise ValueError(f"trust {self.trust} must lie in [0, 1)")

    def __call__(self, state: State, seed: int) -> Prediction:
        """The wrapped model and the past jobs, weighted by how well each predicted the runs so far."""
        if not state.problem.history:
            return self.surrogate(state, seed)
        found = self.mixture(state, seed)
        if len(found) == 1:
            return found[0][1]
        share = np.array([weight for weight, _ in found])
        means = np.stack([one.mean[:, :, 0] for _, one in found])
        spread = np.stack([np.square(one.std[:, :, 0]) for _, one in found])
        mean, std = found[0][1].mean.copy(), found[0][1].std.copy()
        mean[:, :, 0] = np.tensordot(share, means, 1)
        std[:, :, 0] = np.sqrt(np.tensordot(share, spread + np.square(means - mean[:, :, 0]), 1))
        return replace(found[0][1], mean=mean, std=std)

    def mixture(self, state: State, seed: int) -> list[tuple[float, Prediction]]:
        """The hypotheses that count: the weight of each, in sum 1, and what it predicts.

        The first is the wrapped model; as long as this job has no run, the prior of the hypothesis that the past tells nothing.
        """
        with one_thread():
            fits = self._fits(state)
        alone = [one for one in fits if not one.hypothesis.job]
        weight = sum(one.weight for one in alone)
        shape = (len(state), len(state.open), state.targets)
        first = (
            self.surrogate(state, seed) if len(state.rows) else Prediction("log time", np.zeros(shape), np.ones(shape))
        )
        if first.form != "log time" or weight > 1 - _LEAST_WEIGHT:
            return [(1.0, first)]
        if not len(state.rows):
            first = _replaced(first, *alone[-1].predict(state))
        found = [(weight, first)]
        for one in fits:
            if one.hypothesis.job and one.weight > _LEAST_WEIGHT:
                found.append((one.weight, _replaced(first, *one.predict(state))))
        total = sum(share for share, _ in found)
        return [(share / total, one) for share, one in found]

    def weights(self, state: State) -> dict[str, float]:
        """How much each past job counts; the name `""` is for what the wrapped model alone predicts."""
        found: dict[str, float] = {}
        for one in self._fits(state):
            found[one.hypothesis.job] = found.get(one.hypothesis.job, 0.0) + one.weight
        return found

    def _fits(self, state: State) -> list[_Fit]:
        problem = state.problem
        deadline_s = problem.deadline_s if 0 < problem.deadline_s < np.inf else 0.0
        hypotheses = _hypotheses(problem.space, problem.history, self.trust, deadline_s)
        local = _correlation(problem.space, np.arange(len(state.open)), state.rows)
        fits = [_fit(one, state, local) for one in hypotheses]
        logs = np.array([one.evidence + np.log(one.hypothesis.prior) for one in fits])
        share = np.exp(logs - logs.max())
        return [replace(one, weight=float(each)) for one, each in zip(fits, share / share.sum(), strict=True)]


def _replaced(prediction: Prediction, mean: FloatArray, variance: FloatArray) -> Prediction:
    """A prediction with other moments of ln time `[b, q]`; metrics stay."""
    means, stds = prediction.mean.copy(), prediction.std.copy()
    means[:, :, 0], stds[:, :, 0] = mean, np.sqrt(variance)
    return replace(prediction, mean=means, std=stds)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A hypothesis after the runs of this job."""

    hypothesis: Hypothesis
    evidence: float
    """ln of the probability density that it gave to the runs."""
    mean: FloatArray
    """Posterior mean `[q]`."""
    known: FloatArray
    """L⁻¹ K `[n, q]`: what the runs explain of every row."""
    weight: float = 0.0

    def predict(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of ln time in every state `[b, q]`, after its imagined runs."""
        hypothesis, q = self.hypothesis, len(self.mean)
        prior = np.square(hypothesis.parts).sum(axis=0) + hypothesis.bend**2 + hypothesis.doubt
        variance = np.maximum(prior - np.square(self.known).sum(axis=0), 1e-9)
        if not state.imagined_rows.shape[1]:
            shape = (len(state), q)
            return np.broadcast_to(self.mean, shape), np.broadcast_to(variance, shape)
        extra, flat = np.unique(state.imagined_rows, return_inverse=True)
        place: IntArray = np.asarray(flat).reshape(state.imagined_rows.shape)
        every = np.arange(q)
        local = _correlation(state.problem.space, every, extra)
        column = hypothesis.covariance(local, every, extra) - self.known.T @ self.known[:, extra]
        own_noise = _NOISE**2 * np.eye(state.imagined_rows.shape[1])
        among: FloatArray = np.asarray(column[extra][place[:, :, None], place[:, None, :]] + own_noise)
        gain = np.linalg.solve(among, np.moveaxis(column[:, place], 0, -1))  # [b, e, q]
        wrong = state.imagined_targets[:, :, 0] - self.mean[state.imagined_rows]
        mean = self.mean + np.einsum("be,beq->bq", wrong, gain)
        less = np.einsum("qbe,beq->bq", column[:, place], gain)
        return mean, np.maximum(variance - less, 1e-9)


def _fit(hypothesis: Hypothesis, state: State, local: FloatArray) -> _Fit:
    """Runs one after the other; `local [q, n]`. A stopped run only says that its time is longer.

    Its site is the normal distribution that gives the moments of the truncated one (assumed density filtering).
    """
    rows, stopped = state.rows, ~np.isnan(state.bound_s)
    seen = np.log(np.maximum(np.where(stopped, state.bound_s, state.seconds), _SHORTEST_S))
    cross = hypothesis.covariance(local, np.arange(len(state.open)), rows)
    known, evidence = np.zeros((len(rows), len(cross))), 0.0
    mean = hypothesis.mean.copy()
    for i, row in enumerate(rows):
        column = cross[:, i] - known[:i].T @ known[:i, row]
        variance, value = max(float(column[row]), 1e-9) + _NOISE**2, float(seen[i])
        gap = (value - float(mean[row])) / np.sqrt(variance)
        if stopped[i]:
            evidence += float(log_ndtr(-gap))
            hazard = float(np.exp(-0.5 * gap * gap - log_ndtr(-gap)) / np.sqrt(2 * np.pi))
            left = min(max(1.0 - hazard * (hazard - gap), 1e-3), 1.0 - 1e-9)
            value = float(mean[row]) + hazard * np.sqrt(variance) / (1.0 - left)
            variance = variance / (1.0 - left)
        else:
            evidence -= 0.5 * (gap * gap + float(np.log(2 * np.pi * variance)))
        known[i] = column / np.sqrt(variance)
        mean = mean + column * (value - mean[row]) / variance
    return _Fit(hypothesis, evidence, mean, known)


def _correlation(space: Space, one: IntArray, other: IntArray) -> FloatArray:
    """Correlation of the local part `[r, s]`: rough, because times have cliffs."""
    inputs = standard_inputs(space)
    first, second = inputs[one], inputs[other]
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1)[None] - 2.0 * first @ second.T
    return np.asarray(np.exp(-np.sqrt(np.maximum(squares, 0.0) / inputs.shape[1])))


def _relatedness(curves: Sequence[Curve]) -> float:
    """The share of the past jobs that some other past job resembles; 1 for a single job, of which nothing is known, and 0 for none.

    Jobs that tell nothing about each other seldom tell something about this one.
    """
    own = [curve for curve in curves if curve.factor == 1.0]
    if len(own) < 2:
        return float(len(own))
    related = sum(
        min(float(np.std(one.mean - other.mean)) for other in curves if other.name != one.name) <= max(_BENDS)
        for one in own
    )
    return (0.5 + related) / (0.5 + len(own))


@lru_cache(maxsize=16)
def _hypotheses(space: Space, history: tuple[PastJob, ...], trust: float, deadline_s: float) -> tuple[Hypothesis, ...]:
    """The past jobs, their average, and that they tell nothing; cached, because neither space nor history change."""
    curves = past_curves(space, history)
    ones, none = np.ones(len(space)), np.zeros(len(space))
    price = log_price(space)
    level = np.log(deadline_s) if deadline_s else float(np.mean([curve.mean.mean() for curve in curves] or [0.0]))
    parts = np.stack([_CENTRE_STD * ones, _SLOPE_STD * price])
    trust *= _relatedness(curves)
    start = (1.0 - trust) / len(_ALONE)
    found = [Hypothesis("", start, level + _SLOPE * price, parts, bend, none) for bend in _ALONE]
    names = {curve.name for curve in curves}
    for name in names:
        own = [curve for curve in curves if curve.name == name]
        # As it was, at any level; and with more or less data, at the level that follows.
        read = [(curve, _LEVEL) for curve in own] + [(curve, _OFFSET) for curve in own if curve.factor == 1.0]
        for curve, offset in read:
            shape = curve.mean - curve.mean.mean()
            parts = np.stack([offset * ones, _SCALE * shape])
            found += [
                Hypothesis(
                    name, trust / len(names) / len(read) / len(_BENDS), curve.mean, parts, bend, np.square(curve.std)
                )
                for bend in _BENDS
            ]
    return tuple(found)
