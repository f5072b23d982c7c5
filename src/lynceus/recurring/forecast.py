"""What every configuration would take now: the study's predictions, corrected by what production runs have shown since.

A configuration c takes, at the input size x (z = ln x / study's size) and after the changes that were found,

    ln t = a_c + (1 + b + b_c)·z + w_k + Σ_j (d_j + d_cj)·[after change j] + e.

a_c has the moments of the study's model. b, d_j and w_k, which wanders slowly from run to run, are shared by all configurations: if the
adopted one became slower, so did most others. b_c and d_cj are their own, and similar for similar configurations. All are normal with
mean 0, so everything that production runs tell about configurations that did not run is one Gaussian process regression, and the
difference of two is known better than either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from lynceus.errors import InputError
from lynceus.models.features import log_price, standard_inputs
from lynceus.models.state import State
from lynceus.policy.default import AVERAGE
from lynceus.recurring.record import JobRecord, ProductionRun, StudyRun
from lynceus.recurring.time_model import CLIP, NOISE
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray, IntArray

_SLOPE_STD = 0.5
_OWN_SLOPE_STD = 0.2
_CHANGE_STD = 0.3
_OWN_CHANGE_STD = 0.1
_WANDER_STD, _WANDER_RUNS = 0.15, 50.0
"""How far the time of all configurations wanders from what the study found, and after how many runs."""
_TIME_BIN = 15
"""Runs in a row that are taken together at most."""
_STOPPED_SHIFT, _STOPPED_STD = 0.15, 0.3
"""A run that was stopped would have taken e^0.15 times as long, within a factor of e^0.3."""
_MOST_RUNS = 200
_SIZE_BIN = 0.02
"""Runs whose ln size differs by less are taken together."""
_TAILS = 8.0
_NOTHING_KNOWN_STD = 3.0
KNOWN_STD = 0.12
"""The time of a configuration is known when the ln of its ratio to the adopted one's is known to within this much."""


@dataclass(frozen=True, eq=False)
class Prior:
    """What the study's model predicts of every configuration, before any production run."""

    log_s: FloatArray
    """`[q]`"""
    std: FloatArray
    """`[q]`"""
    size: float | None = None
    """The input size of the study."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What every configuration would take and cost for one input, now."""

    log_s: FloatArray
    """Mean ln seconds `[q]`."""
    std: FloatArray
    """What is not known of it `[q]`."""
    difference_std: FloatArray
    """What is not known of the difference to the adopted configuration `[q]`."""
    noise: float
    """Run-to-run variation of ln seconds."""
    usd: FloatArray
    """Expected dollars of a run `[q]`."""
    adopted: int
    """The row of the adopted configuration."""

    def late_chance(self, deadline_s: float | FloatArray, row: int | None = None) -> FloatArray:
        """The chance that a run of each configuration (or of `row`) takes longer than a deadline (or one each) `[q]`."""
        place = slice(None) if row is None else row
        spread = np.hypot(self.std[place], self.noise)
        with np.errstate(divide="ignore"):
            return np.asarray(stdtr(_TAILS, (self.log_s[place] - np.log(deadline_s)) / spread))

    def typical_s(self) -> FloatArray:
        """Median seconds of a run `[q]`."""
        return np.asarray(np.exp(np.minimum(self.log_s, 700.0)))

    def seconds(self, row: int) -> float:
        """Expected seconds of a run."""
        return math.exp(self.log_s[row] + (self.std[row] ** 2 + self.noise**2) / 2)

    def upper_s(self, score: float = 2.0) -> FloatArray:
        """Seconds that a run hardly exceeds `[q]`."""
        return np.asarray(np.exp(np.minimum(self.log_s + score * np.hypot(self.std, self.noise), 700.0)))

    def known(self) -> BoolArray:
        """Configurations whose time is known well enough to be used without a canary `[q]`."""
        return self.difference_std <= KNOWN_STD


def study_prior(problem: Problem, trials: Sequence[StudyRun], runs: Sequence[tuple[int, ProductionRun]] = ()) -> Prior:
    """What the default model learns from trials of studies; without any, from the first production runs `(row, run)`.

    Trials of earlier studies count as if they had taken longer in proportion to the input of the last one.
    """
    observations: list[Observation] = []
    sizes = [trial.size for trial in trials if trial.size is not None][-1:]
    for trial in trials:
        row = row_of(problem, trial.params)
        if row is not None and trial.end is not End.FAILED and trial.seconds > 0:
            grown = sizes[0] / trial.size if sizes and trial.size is not None else 1.0
            observations.append(_observation(len(observations), row, trial.seconds * grown, trial.end))
    if not observations:
        for row, run in runs[:3]:
            observations.append(_observation(len(observations), row, run.seconds, run.end))
        sizes = [run.size for _, run in runs[:3] if run.size is not None]
    if not observations:
        return Prior(-0.5 * log_price(problem.space), np.full(len(problem.space), _NOTHING_KNOWN_STD))
    prediction = AVERAGE(State.present(problem, tuple(observations)), 0)
    return Prior(prediction.mean[0, :, 0], prediction.std[0, :, 0], float(np.median(sizes)) if sizes else None)


def _observation(number: int, row: int, seconds: float, end: End) -> Observation:
    stopped = end is End.TIMEOUT
    plan = Plan(row, why="known", stoppable=False, purpose=Purpose.IMPORT)
    order = Order(number, row, seconds if stopped else math.inf, 0.0, plan)
    target = TrainingTarget(seconds, censored=stopped, bound_s=seconds if stopped else math.nan)
    return Observation(order, Outcome(end, seconds, 0.0), target)


def row_of(problem: Problem, params: object) -> int | None:
    """The row of a configuration; None if the space does not have it (any more)."""
    try:
        return problem.space.row(params)  # type: ignore[arg-type]
    except InputError:
        return None


def forecast(
    problem: Problem,
    record: JobRecord,
    prior: Prior,
    size: float | None,
    *,
    adopted: int,
    changes_s: Sequence[float] = (),
    noise: float | None = None,
) -> Forecast:
    """What every configuration would take for an input of `size`, after all runs of the record.

    `changes_s` are the moments at which changes were found to have begun, seconds since the epoch.
    """
    rows = {one.number: row_of(problem, one.params) for one in record.versions}
    runs = [(row, run) for run in record.runs if (row := rows.get(run.version)) is not None and _tells(run)]
    runs = runs[-_MOST_RUNS:]
    noise = NOISE if noise is None else noise
    if prior.size is None:
        prior = replace(prior, size=next((run.size for _, run in runs if run.size is not None), None))
    z_now = 0.0 if size is None or prior.size is None else math.log(size / prior.size)
    now = _Group.now(np.arange(len(prior.log_s)), z_now, len(changes_s), len(runs))
    mean, variance, shared = _posterior(problem, prior, runs, now, adopted, noise, changes_s)
    log_s = prior.log_s + z_now + mean
    difference = np.maximum(variance + variance[adopted] - 2 * shared, 0.0)
    difference[adopted] = 0.0
    seconds = np.exp(np.minimum(log_s + (np.minimum(variance, 1.0) + noise**2) / 2, 700.0))
    usd = problem.run_costs.of(seconds)
    return Forecast(log_s, np.sqrt(variance), np.sqrt(difference), noise, usd, adopted)


def _tells(run: ProductionRun) -> bool:
    return run.seconds > 0 and run.end is not End.FAILED


@dataclass(frozen=True, eq=False)
class _Group:
    """Runs, or configurations that might run now; those of one configuration at about one size and time are taken together. g of them."""

    row: IntArray
    """`[g]`"""
    z: FloatArray
    """`[g]`"""
    epoch: FloatArray
    """Whether they come after each change `[g, changes]`."""
    place: FloatArray
    """Place among all runs `[g]`."""

    @classmethod
    def now(cls, rows: IntArray, z: float, changes: int, place: int) -> _Group:
        n = len(rows)
        return cls(rows, np.full(n, z), np.ones((n, changes)), np.full(n, float(place)))


def _grouped(
    prior: Prior, runs: Sequence[tuple[int, ProductionRun]], changes_s: Sequence[float], noise: float
) -> tuple[_Group, FloatArray, FloatArray]:
    """Groups of production runs, their ln t − a − z `[g]`, and the variance of that because runs vary `[g]`."""
    groups: dict[tuple[int, int, int, int, bool], list[tuple[float, float, int]]] = {}
    for place, (row, run) in enumerate(runs):
        z = 0.0 if run.size is None or prior.size is None else math.log(run.size / prior.size)
        epoch = sum(run.ended_s >= change for change in changes_s)
        stopped = run.end is End.TIMEOUT
        residual = math.log(run.seconds) + (_STOPPED_SHIFT if stopped else 0.0) - float(prior.log_s[row]) - z
        age = (len(runs) - 1 - place) // _TIME_BIN
        groups.setdefault((row, epoch, round(z / _SIZE_BIN), age, stopped), []).append((z, residual, place))
    members = list(groups.values())
    single = np.array([_STOPPED_STD if stopped else noise for *_, stopped in groups]) ** 2
    counts = np.array([len(one) for one in members])
    made = _Group(
        np.array([row for row, *_ in groups]),
        np.array([np.mean([z for z, _, _ in one]) for one in members]),
        np.array([[place < epoch for place in range(len(changes_s))] for _, epoch, *_ in groups], dtype=float).reshape(
            len(members), len(changes_s)
        ),
        np.array([np.mean([place for _, _, place in one]) for one in members]),
    )
    target = np.array([np.median([residual for _, residual, _ in one]) for one in members])
    # The median of n normal values has π/2 times the variance of their mean.
    return made, target, single * np.where(counts > 2, math.pi / 2, 1.0) / counts


def _posterior(
    problem: Problem, prior: Prior, runs: Sequence[tuple[int, ProductionRun]], now: _Group, adopted: int, noise: float,
    changes_s: Sequence[float],
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Mean and variance of ln t − a − z now `[q]`, and its covariance with the adopted row `[q]`."""
    there = replace(now, **{name: getattr(now, name)[adopted : adopted + 1] for name in ("row", "z", "epoch", "place")})
    alone, shared = _variance(prior, now), _kernel(problem, prior, now, there)[:, 0]
    if not runs:
        return np.zeros(len(alone)), alone, shared
    seen, target, variances = _grouped(prior, runs, changes_s, noise)
    among, to_runs = _kernel(problem, prior, seen, seen), _kernel(problem, prior, now, seen)
    inverse = np.linalg.inv(among + np.diag(variances))
    off = target - among @ (inverse @ target)  # runs that are far off count as less far off
    target = target - np.sign(off) * np.maximum(np.abs(off) - CLIP * np.sqrt(variances), 0.0)
    gain = to_runs @ inverse
    variance = np.maximum(alone - np.einsum("qn,qn->q", gain, to_runs), 1e-8)
    return gain @ target, variance, shared - gain @ to_runs[adopted]


def _variance(prior: Prior, now: _Group) -> FloatArray:
    """The diagonal of `_kernel`."""
    growth = now.z**2 * (_SLOPE_STD**2 + _OWN_SLOPE_STD**2)
    changed = now.epoch.sum(axis=1) * (_CHANGE_STD**2 + _OWN_CHANGE_STD**2)
    return np.asarray(prior.std[now.row] ** 2 + growth + changed + _WANDER_STD**2)


def _kernel(problem: Problem, prior: Prior, one: _Group, other: _Group) -> FloatArray:
    """Prior covariance `[g, h]` of ln t − a − z between two groups.

    What is wrong of a prediction is alike for similar configurations, as far as both are uncertain: min(s, s')².
    """
    features = standard_inputs(problem.space)
    distance = ((features[one.row][:, None, :] - features[other.row][None, :, :]) ** 2).mean(axis=2)
    alike = np.exp(-2.0 * distance)
    level = np.minimum(prior.std[one.row][:, None], prior.std[other.row][None, :]) ** 2 * alike
    growth = np.outer(one.z, other.z) * (_SLOPE_STD**2 + _OWN_SLOPE_STD**2 * alike)
    changed = (one.epoch @ other.epoch.T) * (_CHANGE_STD**2 + _OWN_CHANGE_STD**2 * alike)
    wander = _WANDER_STD**2 * np.exp(-np.abs(one.place[:, None] - other.place[None, :]) / _WANDER_RUNS)
    return np.asarray(level + growth + changed + wander)
