"""What every configuration would take now: the study's predictions, corrected by what production runs have shown since.

A configuration c takes, at the input size x (z = ln x / study's size) and after the changes that were found,

    ln t = a_c + (1 + b + b_c)·z + Σ_j (d_j + d_cj)·[after change j] + e.

a_c has the moments of the study's model. b and d_j are shared by all configurations: if the adopted one became slower, so will most
others. b_c and d_cj are their own, and similar for similar configurations. All are normal with mean 0, so everything that production runs
tell about configurations that did not run is one Gaussian process regression, and the difference of two is known better than either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from lynceus.errors import InputError
from lynceus.models.features import standard_inputs
from lynceus.models.state import State
from lynceus.policy.default import MODEL
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
_STOPPED_SHIFT, _STOPPED_STD = 0.15, 0.3
"""A run that was stopped would have taken e^0.15 times as long, within a factor of e^0.3."""
_MOST_RUNS = 200
_TAILS = 8.0
KNOWN_STD = 0.08
"""The time of a configuration is known when its ln is known to within this much."""


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

    def late_chance(self, deadline_s: float) -> FloatArray:
        """The chance that a run of each configuration is late `[q]`."""
        if math.isinf(deadline_s):
            return np.zeros(len(self.log_s))
        spread = np.hypot(self.std, self.noise)
        return np.asarray(stdtr(_TAILS, (self.log_s - math.log(deadline_s)) / spread))

    def seconds(self, row: int) -> float:
        """Expected seconds of a run."""
        return math.exp(self.log_s[row] + (self.std[row] ** 2 + self.noise**2) / 2)

    def upper_s(self, row: int, score: float = 2.0) -> float:
        """Seconds that a run hardly exceeds."""
        return math.exp(self.log_s[row] + score * math.hypot(self.std[row], self.noise))

    def known(self) -> BoolArray:
        """Configurations whose time is known well enough to be used without a canary `[q]`."""
        return self.std <= KNOWN_STD


def study_prior(problem: Problem, trials: Sequence[StudyRun], runs: Sequence[tuple[int, ProductionRun]] = ()) -> Prior:
    """What the default model learns from a study's trials; without any, from the first production runs `(row, run)`."""
    observations: list[Observation] = []
    for trial in trials:
        row = row_of(problem, trial.params)
        if row is not None and trial.end is not End.FAILED and trial.seconds > 0:
            observations.append(_observation(len(observations), row, trial.seconds, trial.end))
    sizes = [trial.size for trial in trials if trial.size is not None]
    if not observations:
        for row, run in runs[:3]:
            observations.append(_observation(len(observations), row, run.seconds, run.end))
        sizes = [run.size for _, run in runs[:3] if run.size is not None]
    prediction = MODEL(State.present(problem, tuple(observations)), 0)
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
    z_now = 0.0 if size is None or prior.size is None else math.log(size / prior.size)
    q = len(prior.log_s)
    if runs:
        mean, variance, shared, own = _posterior(problem, prior, runs, z_now, changes_s, noise, adopted)
    else:
        everything = np.arange(q)
        covariance = _kernel(problem, prior, everything, np.array([adopted]), z_now, z_now, 1.0)[:, 0]
        mean, shared = np.zeros(q), covariance
        variance = prior.std**2 + z_now**2 * (_SLOPE_STD**2 + _OWN_SLOPE_STD**2)
        own = float(variance[adopted])
    log_s = prior.log_s + z_now + mean
    difference = np.maximum(variance + own - 2 * shared, 0.0)
    difference[adopted] = 0.0
    seconds = np.exp(np.minimum(log_s + (np.minimum(variance, 1.0) + noise**2) / 2, 700.0))
    usd = problem.run_costs.of(seconds)
    return Forecast(log_s, np.sqrt(variance), np.sqrt(difference), noise, usd, adopted)


def _tells(run: ProductionRun) -> bool:
    return run.seconds > 0 and run.end is not End.FAILED


def _posterior(
    problem: Problem,
    prior: Prior,
    runs: Sequence[tuple[int, ProductionRun]],
    z_now: float,
    changes_s: Sequence[float],
    noise: float,
    adopted: int,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Mean and variance of ln t − a − z `[q]`, its covariance with the adopted row `[q]`, and the variance there."""
    q, place = len(prior.log_s), np.array([row for row, _ in runs])
    z = np.array(
        [0.0 if run.size is None or prior.size is None else math.log(run.size / prior.size) for _, run in runs]
    )
    stopped = np.array([run.end is End.TIMEOUT for _, run in runs])
    epoch = np.array([[run.ended_s >= change for change in changes_s] for _, run in runs], dtype=float)
    epoch = epoch.reshape(len(runs), len(changes_s))
    target = np.log([run.seconds for _, run in runs]) + np.where(stopped, _STOPPED_SHIFT, 0.0) - prior.log_s[place] - z
    variances = np.where(stopped, _STOPPED_STD**2, noise**2)
    among = _kernel(problem, prior, place, place, z[:, None], z[None, :], epoch @ epoch.T)
    everything, now = np.arange(q), np.ones(len(changes_s))
    to_runs = _kernel(problem, prior, everything, place, z_now, z[None, :], (epoch @ now)[None, :])
    to_adopted = _kernel(problem, prior, everything, np.array([adopted]), z_now, z_now, float(len(changes_s)))[:, 0]
    inverse = np.linalg.inv(among + np.diag(variances))
    weights = inverse @ target
    off = target - among @ weights  # runs that are far off count as less far off
    target = target - np.sign(off) * np.maximum(np.abs(off) - CLIP * np.sqrt(variances), 0.0)
    gain = to_runs @ inverse
    alone = prior.std**2 + z_now**2 * (_SLOPE_STD**2 + _OWN_SLOPE_STD**2)
    alone = alone + len(changes_s) * (_CHANGE_STD**2 + _OWN_CHANGE_STD**2)
    variance = np.maximum(alone - np.einsum("qn,qn->q", gain, to_runs), 1e-8)
    shared = to_adopted - gain @ to_runs[adopted]
    return gain @ target, variance, shared, float(variance[adopted])


def _kernel(
    problem: Problem,
    prior: Prior,
    rows: IntArray,
    others: IntArray,
    z: FloatArray | float,
    z_others: FloatArray | float,
    both_changed: FloatArray | float,
) -> FloatArray:
    """Prior covariance `[n, m]` of ln t − a − z between runs; `both_changed` counts the changes that both come after."""
    features = standard_inputs(problem.space)
    distance = ((features[rows][:, None, :] - features[others][None, :, :]) ** 2).mean(axis=2)
    alike = np.exp(-2.0 * distance)
    level = prior.std[rows][:, None] * prior.std[others][None, :] * alike
    growth = np.multiply(z, z_others) * (_SLOPE_STD**2 + _OWN_SLOPE_STD**2 * alike)
    changed = np.multiply(both_changed, _CHANGE_STD**2 + _OWN_CHANGE_STD**2 * alike)
    return np.asarray(level + growth + changed)
