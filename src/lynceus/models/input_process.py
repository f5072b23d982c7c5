"""A Gaussian process over configuration and input, for one quantity of a run: its ln time, or a metric.

Of a run of configuration x on an input with the numbers c (its size, its rows …) it models

    y(x, c) = shape(x) + Σ_j (β_j + δ_j(x)) ln(c_j / r_j) + level and shape of the input's names + noise

where r_j is the middle of the inputs that ran. shape(x) is a level, a trend along the price and a rough local part, as in the models of the
search. β is the growth that all configurations share, δ(x) what some of them grow faster. There are two hypotheses. Either shape(x) stays
as it is while the input grows; or it is a function of the data that each machine has (`lynceus.models.input_coordinates`): then κ times
the data on κ times the machines take hardly longer, and β is what this weak scaling lacks. All settings are averaged by their evidence.

Shapes: q places that are predicted, n runs, d coordinates, j numbers of an input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lynceus.space.column import BoolArray, FloatArray, IntArray

_LEVEL_STD = 2.0
_NAME_STDS = (0.2, 0.6, 1.5)
"""Std of the level of an input that has a name."""
_BENDS = (0.05, 0.2, 0.5)
"""Std of the local part of shape(x)."""
_LOCAL_GROWTHS = (0.05, 0.2)
"""Std of δ(x)."""
_OWN_SHAPES = (0.05, 0.2)
"""Std of the local part that a named input has for itself."""
NOISES = (0.02, 0.06, 0.15)
"""Std between runs of one configuration on one input."""
_LEAST_WEIGHT = 1e-3
"""Members with less weight are left out."""


@dataclass(frozen=True, eq=False)
class Places:
    """Configurations, each on an input."""

    points: FloatArray
    """Coordinates `[n, d]`."""
    moved: FloatArray
    """The same, relative to the data of each machine `[n, d]`."""
    price: FloatArray
    """ln price, centred `[n]`."""
    moved_price: FloatArray
    """The same, relative to the data, where price follows the number of machines `[n]`."""
    numbers: FloatArray
    """ln(c / r) of every number of the input `[n, j]`."""
    labels: IntArray
    """Code of the input's names `[n]`; −1 for inputs without one."""

    def __len__(self) -> int:
        return len(self.price)

    def only(self, which: BoolArray) -> Places:
        """Some of them."""
        every = self.points, self.moved, self.price, self.moved_price, self.numbers
        points, moved, price, moved_price, numbers = (one[which] for one in every)
        return Places(points, moved, price, moved_price, numbers, self.labels[which])

    def and_average(self, label: int) -> Places:
        """With one more: an average configuration on the middle input of this name."""
        every = self.points, self.moved, self.price, self.moved_price, self.numbers
        points, moved, price, moved_price, numbers = (
            np.concatenate([one, np.zeros((1, *one.shape[1:]))]) for one in every
        )
        return Places(points, moved, price, moved_price, numbers, np.append(self.labels, label))


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed before any run."""

    slope: tuple[float, float]
    """Mean and std of the slope along ln price."""
    growth: tuple[tuple[float, float], ...]
    """Mean and std of β of each number."""
    moved_growth: tuple[tuple[float, float], ...]
    """The same where shape(x) is a function of the data of each machine."""
    noises: tuple[float, ...] = NOISES
    """Std between runs of one configuration on one input: the values that may be."""

    def means(self, *, moved: bool) -> FloatArray:
        """Of β `[j]`."""
        return np.array([mean for mean, _ in (self.moved_growth if moved else self.growth)])

    def variances(self, *, moved: bool) -> FloatArray:
        """Of β `[j]`."""
        return np.square([std for _, std in (self.moved_growth if moved else self.growth)])


@dataclass(frozen=True, slots=True)
class _Setting:
    """Prior stds of one member of the average."""

    moved: bool
    """Whether shape(x) is a function of the data of each machine."""
    bend: float
    local: float
    own: float
    level: float
    noise: float


@dataclass(frozen=True, eq=False)
class _Member:
    setting: _Setting
    factor: FloatArray
    """Lower Cholesky factor of the covariance of the runs `[n, n]`."""
    weighed: FloatArray
    """K⁻¹ (y − prior mean) `[n]`."""
    weight: float


@dataclass(frozen=True, eq=False)
class InputProcess:
    """The process after the runs."""

    runs: Places
    prior: Prior
    centre: float
    members: tuple[_Member, ...]

    @classmethod
    def fit(
        cls, runs: Places, y: FloatArray, stopped: BoolArray, prior: Prior, doubt: FloatArray | None = None
    ) -> InputProcess:
        """Learn from `y [n]`; `stopped [n]` marks lower bounds, `doubt [n]` is variance beyond the noise of runs."""
        doubt = np.zeros(len(y)) if doubt is None else doubt
        centre = float(np.median(y[doubt == 0.0]))
        process = cls(runs, prior, centre, ())
        gaps = {moved: y - process._mean(runs, moved=moved) for moved in (False, True)}
        solved = []
        for setting, covariance in process._covariances(runs):
            values, variances, evidence = _sites(covariance, gaps[setting.moved], stopped, setting.noise**2 + doubt)
            factor = cholesky(covariance + np.diag(variances), lower=True)
            solved.append((setting, factor, np.asarray(cho_solve((factor, True), values)), evidence))
        logs = np.array([one[3] for one in solved])
        share = np.exp(logs - logs.max())
        share = np.where(share < _LEAST_WEIGHT, 0.0, share) / share[share >= _LEAST_WEIGHT].sum()
        members = tuple(_Member(*one[:3], float(each)) for one, each in zip(solved, share, strict=True) if each > 0)
        return cls(runs, prior, centre, members)

    def predict(self, places: Places) -> tuple[FloatArray, FloatArray]:
        """Mean and std of a *run* at every place `[q]`: the noise of runs is part of the std."""
        settings = [one.setting for one in self.members]
        means, variances = [], []
        for member, cross in zip(self.members, self._cross(places, settings), strict=True):
            known = solve_triangular(member.factor, cross.T, lower=True)
            own = self._own(places, member.setting) - np.square(known).sum(axis=0)
            means.append(self._mean(places, moved=member.setting.moved) + cross @ member.weighed)
            variances.append(np.maximum(own, 1e-9) + member.setting.noise**2)
        return self._mixed(np.stack(means), np.stack(variances))

    def _mixed(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and std of the mixture of all members (law of total variance)."""
        weight = np.array([one.weight for one in self.members])
        centre = weight @ mean
        return np.asarray(centre), np.sqrt(weight @ (variance + np.square(mean - centre)))

    def _mean(self, places: Places, *, moved: bool) -> FloatArray:
        """Prior mean of each place `[q]`."""
        price = places.moved_price if moved else places.price
        return np.asarray(self.centre + self.prior.slope[0] * price + places.numbers @ self.prior.means(moved=moved))

    def _settings(self) -> list[_Setting]:
        """All combinations that make a difference for these runs."""
        runs = self.runs
        named = bool((runs.labels >= 0).any())
        moved = (False, True) if runs.numbers.shape[1] else (False,)
        names = (_OWN_SHAPES, _NAME_STDS) if named else ((0.0,), (0.0,))
        growths = _LOCAL_GROWTHS if runs.numbers.shape[1] else (0.0,)
        return [_Setting(*one) for one in product(moved, _BENDS, growths, *names, self.prior.noises)]

    def _covariances(self, places: Places) -> list[tuple[_Setting, FloatArray]]:
        settings = self._settings()
        return list(zip(settings, self._cross(places, settings), strict=True))

    def _cross(self, places: Places, settings: Sequence[_Setting]) -> list[FloatArray]:
        """Prior covariance of places with the runs `[q, n]`, for each setting."""
        runs = self.runs
        same = ((places.labels[:, None] == runs.labels[None]) & (runs.labels >= 0)).astype(float)
        between = places.numbers @ runs.numbers.T
        parts = {moved: self._shared(places, moved=moved) for moved in {one.moved for one in settings}}
        found = []
        for one in settings:
            shared, trend, local = parts[one.moved]
            growth = one.local**2 * between * (local + trend)
            found.append(shared + one.bend**2 * local + growth + same * (one.level**2 + one.own**2 * local))
        return found

    def _shared(self, places: Places, *, moved: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What all settings of a hypothesis share: the covariance of level, trend and β, the trend and the local part alone `[q, n]`."""
        runs = self.runs
        own, others = (places.moved_price, runs.moved_price) if moved else (places.price, runs.price)
        trend = np.outer(own, others)
        growth = (places.numbers * self.prior.variances(moved=moved)) @ runs.numbers.T
        return (
            _LEVEL_STD**2 + self.prior.slope[1] ** 2 * trend + growth,
            trend,
            _correlation(places, runs, moved=moved),
        )

    def _own(self, places: Places, one: _Setting) -> FloatArray:
        """Prior variance of each place `[q]`."""
        price, numbers = np.square(places.moved_price if one.moved else places.price), np.square(places.numbers)
        shape = _LEVEL_STD**2 + self.prior.slope[1] ** 2 * price + one.bend**2
        growth = numbers @ self.prior.variances(moved=one.moved) + one.local**2 * numbers.sum(axis=1) * (1.0 + price)
        return np.asarray(shape + growth + (places.labels >= 0) * (one.level**2 + one.own**2))


def _correlation(places: Places, runs: Places, *, moved: bool) -> FloatArray:
    """Correlation of the local part `[q, n]`: rough, because times have cliffs."""
    first, second = (places.moved, runs.moved) if moved else (places.points, runs.points)
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1)[None] - 2.0 * first @ second.T
    return np.asarray(np.exp(-np.sqrt(np.maximum(squares, 0.0) / first.shape[1])))


def _sites(
    among: FloatArray, y: FloatArray, stopped: BoolArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Normal stand-ins of the runs (value and variance `[n]`) and the log evidence.

    A stopped run only says that its time is longer: its stand-in gives the moments of the truncated distribution, one run after the
    other (assumed density filtering). Finished runs come first, because they tell more.
    """
    values, variances = y.astype(float).copy(), noise.astype(float).copy()
    done, late = np.flatnonzero(~stopped), np.flatnonzero(stopped)
    mean, covariance, evidence = np.zeros(len(late)), among[np.ix_(late, late)].copy(), 0.0
    if len(done):
        factor = cholesky(among[np.ix_(done, done)] + np.diag(variances[done]), lower=True)
        white = solve_triangular(factor, y[done], lower=True)
        evidence -= float(0.5 * white @ white + np.log(np.diag(factor)).sum() + 0.5 * len(done) * math.log(2 * math.pi))
        known = solve_triangular(factor, among[np.ix_(done, late)], lower=True)
        mean, covariance = known.T @ white, covariance - known.T @ known
    for place, run in enumerate(late):
        own = max(float(covariance[place, place]), 1e-9)
        total = own + float(noise[run])
        gap = (float(y[run]) - float(mean[place])) / math.sqrt(total)
        chance = float(log_ndtr(-gap))
        evidence += chance
        hazard = math.exp(-0.5 * gap * gap - chance) / math.sqrt(2 * math.pi)
        left = min(max(1.0 - hazard * (hazard - gap), 1e-3), 1.0 - 1e-6)
        values[run] = float(mean[place]) + hazard * math.sqrt(total) / (1.0 - left)
        variances[run] = total / (1.0 - left) - own
        column = covariance[:, place] / (own + variances[run])
        mean = mean + column * (values[run] - mean[place])
        covariance = covariance - np.outer(column, covariance[place])
    return values, variances, evidence
