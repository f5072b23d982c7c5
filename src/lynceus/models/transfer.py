"""Learning from earlier jobs without trusting them.

Every past job is a set of hypotheses: this job's ln time is the past job's, shifted, scaled and bent a little,

    ln T(x) = a + b · m(x) + r(x),      a ~ N(α, σ²),  b ~ N(1, 1/4²),  r a Gaussian process of std ρ,

where m is what the past job says (`past_curves`), as it was or for another amount of data: the one that both jobs say they read, or several
where they do not. Reported metrics are treated in the same way.
Further hypotheses say that the past tells nothing. The runs of this job weigh them by Bayes' rule: the weight of a hypothesis is its
prior weight times the probability density that it gave, one after the other, to the runs that were made.

Shapes: q configurations, n runs of this job, r chosen rows, s draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from lynceus.models.blas import one_thread
from lynceus.models.features import log_price, standard_inputs
from lynceus.models.input_size import GROWTH, WEAK_SCALING
from lynceus.models.past_curves import Curve, credibility, metric_curve, time_curves
from lynceus.problem.job_input import SIZE

if TYPE_CHECKING:
    from lynceus.models.state import State
    from lynceus.problem.history import PastJob
    from lynceus.problem.job_input import JobInput
    from lynceus.problem.problem import Problem
    from lynceus.space.column import FloatArray, IntArray
    from lynceus.space.table import Space

_SHORTEST_S = 1e-3
_SCALE = 0.25
"""Prior std of b around 1."""
_LEVEL, _FREE_LEVEL, _METRIC_LEVEL = 0.3, 1.0, 0.7
"""Prior std of a: where the amount of data explains the level, where nothing does, and for metrics."""
_SIZES = 0.8
"""Where both jobs say how much they read: the weight of the readings for that, against those for any amount."""
_BY_DEADLINES, _BY_DEADLINE = 0.3, 0.6
"""How well the deadlines tell the level: users demand of a job with twice the work twice the time, within a factor of e^0.3; and a deadline
alone is about the time of an average configuration, within e^0.6."""
_BENDS = (0.1, 0.3)
"""Std of r: a sibling, and a relative. Of a metric, in units of the std of the past job's own values: 0.02 is much between compression
ratios from 0.3 to 0.4, and little between throughputs."""
_ALONE = (0.4, 0.8)
"""Std of the local part of the hypotheses that the past tells nothing."""
_SLOPE, _SLOPE_STD, _CENTRE_STD, _METRIC_CENTRE_STD = -0.5, 0.45, 0.5, 1.5
"""They have the priors of the default model: time falls with the price to the power of −0.5 ± 0.45 from about the deadline."""
_NOISE = 0.05
_TRUST = 0.6
"""Prior probability that a past job resembles this one, if it is credible."""
_LIKE = 0.5
"""Past jobs whose curves differ by less (std of ln time) resemble each other."""


@dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process of ln time or of the logarithm of a metric: a mean, and a covariance of rank-one parts and a local one."""

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
        own = np.where(one[:, None] == other[None], self.doubt[one][:, None], 0.0)
        return np.asarray(self.parts[:, one].T @ self.parts[:, other] + self.bend**2 * local + own)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """What one past job, read in one way, says of this job."""

    job: str
    """The past job; empty for the hypotheses that the past tells nothing."""
    prior: float
    """Its weight before any run."""
    processes: tuple[Process | None, ...]
    """Of ln time, then of every metric of the problem; None where nothing is said."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A process after the runs of this job: as if each had shown `sites` with an independent error of variance `noise`."""

    process: Process
    rows: IntArray
    """Runs that count `[n]`."""
    sites: FloatArray
    noise: FloatArray
    evidence: float
    """ln of the probability density that the process gave to the runs."""

    def moments(self, space: Space, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean `[r]` and covariance `[r, r]` of some rows."""
        prior = self.process.covariance(correlation(space, rows, rows), rows, rows)
        if not len(self.rows):
            return self.process.mean[rows], prior
        cross = self.process.covariance(correlation(space, rows, self.rows), rows, self.rows)
        among = self.process.covariance(correlation(space, self.rows, self.rows), self.rows, self.rows)
        factor = cho_factor(among + np.diag(self.noise))
        mean = self.process.mean[rows] + cross @ cho_solve(factor, self.sites - self.process.mean[self.rows])
        return np.asarray(mean), np.asarray(prior - cross @ cho_solve(factor, cross.T))


@dataclass(frozen=True, eq=False)
class Posterior:
    """A hypothesis after the runs of this job."""

    job: str
    weight: float
    fits: tuple[Fit | None, ...]

    def draws(self, space: Space, rows: IntArray, normal: FloatArray) -> list[FloatArray | None]:
        """Joint draws of every target at some rows, as logarithms `[s, r]`, from standard normal numbers `[targets, s, r]`."""
        found: list[FloatArray | None] = []
        for fit, numbers in zip(self.fits, normal, strict=True):
            if fit is None:
                found.append(None)
                continue
            mean, covariance = fit.moments(space, rows)
            root = np.linalg.cholesky(
                covariance + 1e-6 * max(1.0, float(np.trace(covariance)) / len(rows)) * np.eye(len(rows))
            )
            found.append(np.asarray(mean + numbers @ root.T))
        return found


def posteriors(state: State) -> list[Posterior]:
    """All hypotheses with their weights, in sum 1; the first ones say that the past tells nothing."""
    with one_thread():
        hypotheses = hypotheses_of(state.problem)
        fits = [tuple(_fits(one, state)) for one in hypotheses]
    logs = np.array([sum(f.evidence for f in each if f is not None) for each in fits])
    logs += np.log([one.prior for one in hypotheses])
    share = np.exp(logs - logs.max())
    share /= share.sum()
    return [Posterior(one.job, float(w), each) for one, w, each in zip(hypotheses, share, fits, strict=True)]


def past_weights(found: Sequence[Posterior]) -> dict[str, float]:
    """How much each past job counts; the name `""` is for that the past tells nothing."""
    weights: dict[str, float] = {}
    for one in found:
        weights[one.job] = weights.get(one.job, 0.0) + one.weight
    return weights


def usable_history(problem: Problem) -> tuple[PastJob, ...]:
    """The past jobs that count: related ones that can be compared and tell what the objective is made of."""
    needed = problem.goal.metrics
    return tuple(
        job
        for job in problem.history
        if job.related
        and time_curves(problem.space, job)
        and all(metric_curve(problem.space, job, name) is not None for name in needed)
    )


def _fits(hypothesis: Hypothesis, state: State) -> Iterator[Fit | None]:
    for place, process in enumerate(hypothesis.processes):
        if process is None:
            yield None
        elif place == 0:
            stopped = ~np.isnan(state.bound_s)
            seconds = np.where(stopped, state.bound_s, state.seconds)
            yield fitted(process, state.problem.space, state.rows, np.log(np.maximum(seconds, _SHORTEST_S)), stopped)
        else:
            values = state.metrics[:, place - 1]
            known = np.isnan(state.bound_s) & (np.nan_to_num(values) > 0)
            logs = np.log(values[known])
            yield fitted(process, state.problem.space, state.rows[known], logs, np.zeros(len(logs), dtype=bool))


def fitted(
    process: Process,
    space: Space,
    rows: IntArray,
    logs: FloatArray,
    stopped: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Fit:
    """Runs one after the other. A stopped run only says that its value is larger.

    Its site is the normal distribution that gives the moments of the truncated one (assumed density filtering).
    """
    n = len(rows)
    covariance = process.covariance(correlation(space, rows, rows), rows, rows)
    mean, evidence = process.mean[rows].copy(), 0.0
    sites, noise = logs.astype(float).copy(), np.full(n, _NOISE**2)
    for i in range(n):
        own = max(float(covariance[i, i]), 1e-9)
        variance = own + _NOISE**2
        gap = (sites[i] - float(mean[i])) / np.sqrt(variance)
        if stopped[i]:
            evidence += float(log_ndtr(-gap))
            hazard = float(np.exp(-0.5 * gap * gap - log_ndtr(-gap)) / np.sqrt(2 * np.pi))
            left = min(max(1.0 - hazard * (hazard - gap), 1e-3), 1.0 - 1e-9)
            sites[i] = float(mean[i]) + hazard * np.sqrt(variance) / (1.0 - left)
            variance = variance / (1.0 - left)
            noise[i] = variance - own
        else:
            evidence -= 0.5 * (gap * gap + float(np.log(2 * np.pi * variance)))
        column = covariance[:, i].copy()
        mean = mean + column * (sites[i] - mean[i]) / variance
        covariance = covariance - np.outer(column, column) / variance
    return Fit(process, rows, sites, noise, evidence)


def correlation(space: Space, one: IntArray, other: IntArray) -> FloatArray:
    """Correlation of the local part `[r, s]`: rough, because times have cliffs."""
    inputs = standard_inputs(space)
    first, second = inputs[one], inputs[other]
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1)[None] - 2.0 * first @ second.T
    return np.asarray(np.exp(-np.sqrt(np.maximum(squares, 0.0) / inputs.shape[1])))


def hypotheses_of(problem: Problem) -> tuple[Hypothesis, ...]:
    """That the past tells nothing, and every past job that counts."""
    deadline_s = problem.deadline_s if 0 < problem.deadline_s < np.inf else 0.0
    return _hypotheses(problem.space, usable_history(problem), deadline_s, problem.metrics, problem.input)


@lru_cache(maxsize=16)
def _hypotheses(
    space: Space, history: tuple[PastJob, ...], deadline_s: float, metrics: tuple[str, ...], given: JobInput | None
) -> tuple[Hypothesis, ...]:
    belief = [credibility(space, job) for job in history]
    trust = _TRUST * float(np.mean(belief)) * _relatedness(space, history) if history else 0.0
    found = list(_nothing_told(space, history, deadline_s, metrics, 1.0 - trust))
    for job, believed in zip(history, belief, strict=True):
        share = trust * believed / max(sum(belief), 1e-9)
        if share < 1e-6:
            continue
        curves = [metric_curve(space, job, name) for name in metrics]
        for reading in _readings(space, job, deadline_s, given):
            for bend in _BENDS:
                time = _read(reading.curve, reading.shift, reading.std, bend)
                extra = [None if one is None else _read(one, 0.0, _METRIC_LEVEL, bend * one.spread) for one in curves]
                found.append(Hypothesis(job.name, share * reading.weight / len(_BENDS), (time, *extra)))
    return tuple(found)


def _read(curve: Curve, shift: float, level: float, bend: float) -> Process:
    shape = curve.mean - curve.mean.mean()
    parts = np.stack([np.full(len(shape), level), _SCALE * shape])
    return Process(curve.mean + shift, parts, bend, np.square(curve.std))


@dataclass(frozen=True, eq=False)
class _Reading:
    """One way to read a past job."""

    weight: float
    curve: Curve
    shift: float
    """Mean of a."""
    std: float
    """Of a."""

    def with_level(self, told: float, error: float) -> _Reading:
        """With what the deadlines tell about a: the product of both, weighed by how well they agree."""
        if np.isinf(error):
            return self
        both, gap = self.std**2 + error**2, told - self.shift
        agreed = float(np.exp(-0.5 * gap**2 / both) / np.sqrt(both))
        shift, std = self.shift + gap * self.std**2 / both, self.std * error / float(np.sqrt(both))
        return _Reading(self.weight * agreed, self.curve, shift, std)


def _readings(space: Space, job: PastJob, deadline_s: float, given: JobInput | None) -> Iterator[_Reading]:
    """Ways to read a past job, with weights in sum 1: the amount of data tells the level of the time, and so do the deadlines."""
    curves = time_curves(space, job)
    own = next(curve for curve in curves if curve.factor == 1.0)
    found = [_Reading(1.0, curve, 0.0, _LEVEL) for curve in curves] + [_Reading(1.0, own, 0.0, _FREE_LEVEL)]
    if sized := list(_for_size(space, job, own, given)):
        found = [replace(one, weight=(1.0 - _SIZES) / len(found)) for one in found]
        found += [replace(one, weight=_SIZES / len(sized)) for one in sized]
    told = []
    for one in found:
        middle = float(one.curve.mean.mean())
        level, error = 0.0, np.inf
        if deadline_s and job.deadline_s:
            level, error = float(own.mean.mean() + np.log(deadline_s / job.deadline_s)) - middle, _BY_DEADLINES
        elif deadline_s:
            level, error = float(np.log(deadline_s)) - middle, _BY_DEADLINE
        told.append(one.with_level(level, error))
    total = sum(one.weight for one in told)
    yield from (replace(one, weight=one.weight / total) for one in told)


def _for_size(space: Space, job: PastJob, own: Curve, given: JobInput | None) -> Iterator[_Reading]:
    """The two ways in which time grows with the input (`input_process`), for the sizes that both jobs say; nothing where one does not.

    Either the shape stays and the level grows, or what counts is the data that each machine has.
    """
    sizes = [one.numbers.get(SIZE, 0.0) for one in (given, job.input) if one is not None]
    if len(sizes) < 2 or not min(sizes) > 0:
        return
    factor = sizes[0] / sizes[1]
    more = float(np.log(factor))
    yield _Reading(1.0, own, GROWTH[0] * more, float(np.hypot(_LEVEL, GROWTH[1] * more)))
    if (scaled := time_curves(space, job, (factor,))[0]).factor == factor:
        yield _Reading(1.0, scaled, WEAK_SCALING[0] * more, float(np.hypot(_LEVEL, WEAK_SCALING[1] * more)))


def _nothing_told(
    space: Space, history: Sequence[PastJob], deadline_s: float, metrics: Sequence[str], weight: float
) -> Iterator[Hypothesis]:
    """The past tells nothing: the priors of the default model."""
    ones, none, price = np.ones(len(space)), np.zeros(len(space)), log_price(space)
    known = [float(curve.mean.mean()) for job in history for curve in time_curves(space, job) if curve.factor == 1.0]
    level = np.log(deadline_s) if deadline_s else float(np.mean(known or [0.0]))
    centre = _CENTRE_STD if deadline_s else _METRIC_CENTRE_STD
    for bend in _ALONE:
        time = Process(level + _SLOPE * price, np.stack([centre * ones, _SLOPE_STD * price]), bend, none)
        others: list[Process | None] = []
        for name in metrics:
            curves = [curve for job in history if (curve := metric_curve(space, job, name)) is not None]
            if not curves:
                others.append(None)
                continue
            middle = float(np.mean([curve.mean.mean() for curve in curves]))
            parts = np.stack([_METRIC_CENTRE_STD * ones, _SLOPE_STD * price])
            others.append(Process(np.full(len(space), middle), parts, bend, none))
        yield Hypothesis("", weight / len(_ALONE), (time, *others))


def _relatedness(space: Space, history: Sequence[PastJob]) -> float:
    """The share of the past jobs that some other past job resembles; 1 for a single job, of which nothing is known.

    Jobs that tell nothing about each other seldom tell something about this one.
    """
    if len(history) < 3:
        return 1.0
    curves = [time_curves(space, job) for job in history]
    shapes = [[curve.mean - curve.mean.mean() for curve in each] for each in curves]
    own = [next(c.mean - c.mean.mean() for c in each if c.factor == 1.0) for each in curves]
    related = sum(
        min(float(np.std(own[i] - shape)) for j, each in enumerate(shapes) if j != i for shape in each) <= _LIKE
        for i in range(len(history))
    )
    return (0.5 + related) / (0.5 + len(history))
