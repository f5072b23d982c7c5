"""Gaussian processes over configuration and share of the data as a surrogate: situation in, belief out (Fabolas, Fabulinus)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.special import expit

from lynceus.distribution import Normal
from lynceus.fraction import configurations, shares
from lynceus.problem import Problem
from lynceus.randomness import derive
from lynceus.situation import Belief, BoolArray, FloatArray, IntArray, Situation
from lynceus.space import Space
from lynceus.surrogate.fraction_kernel import Growth, Plane, basis
from lynceus.surrogate.fraction_model import FractionModel, fit_fractions
from lynceus.surrogate.gaussian_kernel import Inputs as Table
from lynceus.surrogate.gaussian_prior import Settings
from lynceus.surrogate.inputs import Inputs, model_inputs, told_run

_EDGE = 0.01
"""How far from 0 and 1 a share of successes is kept, so that its log-odds exist: ln((a + edge) / (1 + edge - a))."""


@dataclass(frozen=True, slots=True)
class Fabolas:
    """One process for the logarithm of time, one for each metric, all with the kernel of Fabolas over the share of the data."""

    metrics: Literal["auto", "raw"] = "auto"
    """Model metrics that lie between 0 and 1 (accuracies) as log-odds, in which an error of 1 % and one of 2 % are far apart."""
    chain: int = 0
    """Steps of Markov-chain Monte Carlo over the hyper-parameters, on top of adaptive importance sampling; 0: none."""
    censored: Literal["bounds", "estimates"] = "bounds"
    """Treat stopped runs as lower bounds (Tobit, by expectation propagation), or believe the estimates that were told."""
    inputs: Inputs = "features"
    settings: Settings = field(default_factory=lambda: Settings(kept=8))
    care: int = 4
    """How many times as many vectors of hyper-parameters an answer rests on. With 8 the chance to keep a limit moves by 0.015 to 0.02
    from luck alone, more than what separates an answer that is 99 % sure from one that is not."""

    def carefully(self) -> Fabolas:
        """The model for answers."""
        if self.care == 1:
            return self
        settings = self.settings
        more = replace(
            settings,
            kept=self.care * settings.kept,
            draws=max(1, self.care // 2) * settings.draws,
            rounds=settings.rounds + 1,
        )
        return replace(self, settings=more, care=1)

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """Mean and std at every row in every situation: of a run's log time and of limited metrics, of the goal without noise."""
        if not len(situation.rows):
            raise ValueError("Fabolas needs at least one observation; put an initial design before the planner")
        fitted = self._fitted(situation, seed)
        rows = np.arange(len(situation.open))
        if situation.imagined_rows.shape[1] == 0:
            parts = [one.moments() for one in fitted]
            shape = (len(situation), len(rows))
            parts = [(np.broadcast_to(mean, shape), np.broadcast_to(std, shape)) for mean, std in parts]
        else:
            parts = [
                one.after(situation.imagined_rows, situation.imagined_told[:, :, index], rows)
                for index, one in enumerate(fitted)
            ]
        mean, std = (np.stack(part, axis=2) for part in zip(*parts, strict=True))
        return Belief("log time", mean, std)

    def foresee(self, situation: Situation, seed: int) -> FractionForesight:
        """The joint belief in the only situation."""
        if len(situation) != 1:
            raise ValueError(f"foresight is about one situation, got {len(situation)}")
        luck = derive(seed, "foresight", situation.started)
        return FractionForesight(situation.problem, tuple(self._fitted(situation, seed)), luck)

    def _fitted(self, situation: Situation, seed: int) -> list[Target]:
        key = (self, situation.problem.space, situation.problem.fraction, seed, situation.started)
        data = (situation.rows.tobytes(), situation.seconds.tobytes(), situation.metrics.tobytes())
        return _fit_all(
            _Asked((*key, *data, situation.bound_s.tobytes(), situation.problem.metrics), self, situation, seed)
        )

    def target(self, situation: Situation, index: int, seed: int) -> Target:
        """The fitted process of one target (0: the logarithm of a run's time)."""
        problem = situation.problem
        told, bounds = self._told(situation, index)
        known = np.isfinite(told)
        noisy = index == 0 or problem.metrics[index - 1] != problem.goal.metric
        odds = index > 0 and self.metrics == "auto" and bool(((told[known] >= 0) & (told[known] <= 1)).all())
        if not known.any():
            # Nothing was ever reported of this metric: as good as no model.
            return Target(None, len(problem.space), odds=False, noisy=noisy)
        settings = self.settings if index == 0 else replace(self.settings, spread=None)
        plane = _plane(problem.space, problem.fraction, "linear" if index == 0 else "settling", self.inputs)
        y = log_odds(told[known]) if odds else told[known]
        luck = derive(seed, "fabolas", situation.started, index)
        model = fit_fractions(plane, situation.rows[known], y, luck, settings, bounds[known], self.chain)
        return Target(model, len(problem.space), odds, noisy)

    def _told(self, situation: Situation, index: int) -> tuple[FloatArray, BoolArray]:
        """What is told of a target `[n]`, in its own unit, and which of it are lower bounds."""
        if index > 0:
            told = situation.metrics[:, index - 1]
            return told, np.zeros(len(told), dtype=bool)
        bounds = ~np.isnan(situation.bound_s) & (self.censored == "bounds")
        return told_run(situation, "log time", np.where(bounds, situation.bound_s, situation.seconds)), bounds


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question to the model that is known again by its key: everything that the answer depends on."""

    key: tuple[object, ...]
    surrogate: Fabolas
    situation: Situation
    seed: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=4)
def _fit_all(asked: _Asked) -> list[Target]:
    """All targets; a planner and the answer ask the same question several times in a row."""
    return [asked.surrogate.target(asked.situation, index, asked.seed) for index in range(asked.situation.targets)]


@dataclass(frozen=True, eq=False)
class Target:
    """A fitted process with the way from its unit to that of the target."""

    model: FractionModel | None
    """Nothing: the target was never reported."""
    rows: int
    odds: bool
    """Whether the process is about log-odds."""
    noisy: bool
    """Whether the std handed out includes the noise of a run: yes where a limit must hold for the run itself."""

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and std at every row `[q]`, in the target's unit."""
        if self.model is None:
            return np.zeros(self.rows), np.ones(self.rows)
        return self._shown(*self.model.moments())

    def after(self, extra: IntArray, values: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same at some rows `[b, r]` after imagined values `[b, e]`."""
        if self.model is None:
            return np.zeros((len(extra), len(rows))), np.ones((len(extra), len(rows)))
        return self._shown(*self.model.after(extra, log_odds(values) if self.odds else values, rows))

    def expected(self, extra: IntArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same at some rows `[b, r]` after one run of each row of `extra [b]` that shows what the process expects of it."""
        if self.model is None:
            return np.zeros((len(extra), len(rows))), np.ones((len(extra), len(rows)))
        mean, _ = self.model.moments()
        return self._shown(*self.model.after(extra[:, np.newaxis], mean[extra][:, np.newaxis], rows))

    def _shown(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.noisy and self.model is not None:
            std = np.sqrt(np.square(std) + self.model.noise**2)
        return from_log_odds(mean, std) if self.odds else (mean, std)


@dataclass(frozen=True, eq=False)
class FractionForesight:
    """The joint belief of the processes; the goal in the unit of its process (log-odds, log dollars), smaller is better."""

    problem: Problem
    targets: tuple[Target, ...]
    luck: int

    _kept_draws: dict[tuple[int, int], FloatArray] = field(default_factory=dict, repr=False)

    @cached_property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""
        mask = self.problem.answerable
        return np.arange(len(self.problem.space)) if mask is None else np.flatnonzero(mask)

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the goal `[count, r]`."""
        model, sign = self._goal
        if model is None:
            return np.zeros((count, len(rows)))
        return sign * model.draws(rows, count, self.luck) + self._offset(rows)

    def kept(self, count: int) -> BoolArray:
        """Whether the answers keep every limit in each draw `[count, a]`; the targets are drawn independently."""
        kept = np.ones((count, len(self.answers)), dtype=bool)
        ceiling = self.problem.ceiling_s[self.answers]
        if np.isfinite(ceiling).any() and self.targets[0].model is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                kept &= self._drawn(0, count) <= np.log(np.maximum(ceiling, 0.0))
        for limit in self.problem.metric_limits:
            index = 1 + self.problem.metrics.index(limit.metric)
            one = self.targets[index]
            if one.model is not None:
                bound = float(log_odds(np.array(limit.bound))) if one.odds else limit.bound
                drawn = self._drawn(index, count)
                kept &= drawn >= bound if limit.at_least else drawn <= bound
        return kept

    def _drawn(self, index: int, count: int) -> FloatArray:
        """Draws of a target at the answers `[count, a]`, in the unit of its process; the goal's are those of `draws`."""
        model = self.targets[index].model
        if model is None:
            return np.zeros((count, len(self.answers)))
        name = "time" if index == 0 else self.problem.metrics[index - 1]
        luck = self.luck if index == self._goal_index else derive(self.luck, name)
        key = (index, count)
        if key not in self._kept_draws:
            self._kept_draws[key] = model.draws(self.answers, count, luck)
        return self._kept_draws[key]

    def limited(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Draws at the answers, covariance with them and variance of a measurement, of what limits speak of besides the goal."""
        limits = self.problem.limits
        named = [0] if any(limit.metric in ("time", "cost") for limit in limits) else []
        named += [1 + self.problem.metrics.index(limit.metric) for limit in self.problem.metric_limits]
        found = []
        for index in dict.fromkeys(named):
            model = self.targets[index].model
            if model is not None and index != self._goal_index:
                seen = np.square(model.moments()[1][rows]) + model.noise**2
                found.append((self._drawn(index, count), model.covariance(rows, self.answers), seen))
        return found

    def cross(self, rows: IntArray) -> FloatArray:
        """Covariance of the goal at some rows with the goal at the answers `[r, a]`."""
        model, _ = self._goal
        if model is None:
            return np.zeros((len(rows), len(self.answers)))
        return self._cross[rows]

    def cross_own(self, rows: IntArray) -> FloatArray:
        """Variance of the goal at some rows `[r]`."""
        model, _ = self._goal
        return np.zeros(len(rows)) if model is None else np.square(model.moments()[1][rows])

    def seen(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the goal at some rows `[r]`."""
        model, _ = self._goal
        return self.cross_own(rows) + (1e-12 if model is None else model.noise**2)

    def after(self, rows: IntArray) -> Belief:
        """What would be believed of the answers `[r, a, m]`, had each row just shown what is expected of it.

        A metric that is the goal and nothing else stays as it is: an outcome as expected moves no mean of a process, and
        its std is not asked for.
        """
        limited = {limit.metric for limit in self.problem.metric_limits}
        parts = []
        for name, one in zip(("", *self.problem.metrics), self.targets, strict=True):
            if not name or name in limited:
                parts.append(one.expected(rows, self.answers))
            else:
                shape = (len(rows), len(self.answers))
                mean, std = (np.broadcast_to(part[self.answers], shape) for part in one.moments())
                parts.append((mean, std))
        return Belief("log time", *(np.stack(part, axis=2) for part in zip(*parts, strict=True)))

    @cached_property
    def _cross(self) -> FloatArray:
        model, _ = self._goal
        return np.zeros((0, 0)) if model is None else model.covariance(np.arange(len(self.problem.space)), self.answers)

    @property
    def _goal(self) -> tuple[FractionModel | None, float]:
        """The process of the goal, and −1 where the goal is to be large."""
        return self.targets[self._goal_index].model, -1.0 if self.problem.goal.maximise else 1.0

    @property
    def _goal_index(self) -> int:
        problem = self.problem
        return 0 if problem.kind != "metric" else 1 + problem.metrics.index(problem.goal.metric)

    def _offset(self, rows: IntArray) -> FloatArray:
        """What turns log seconds into log dollars; 0 for other goals."""
        return np.log(self.problem.price[rows]) if self.problem.kind == "cost" else np.zeros(len(rows))


def log_odds(value: FloatArray) -> FloatArray:
    """ln((a + edge)/(1 + edge - a)), a kept within [0, 1]."""
    inside = np.clip(value, 0.0, 1.0)
    return np.asarray(np.log((inside + _EDGE) / (1.0 + _EDGE - inside)))


def from_log_odds(mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and std of a share of successes whose log-odds are normal, by quadrature (its closed form does not exist)."""
    points, weights = Normal(np.zeros(1), np.ones(1)).nodes(7)
    first, second = np.zeros(mean.shape), np.zeros(mean.shape)
    for z, weight in zip(points[0], weights, strict=True):
        value = (1.0 + 2.0 * _EDGE) * expit(mean + z * std) - _EDGE
        first += weight * value
        second += weight * np.square(value)
    return first, np.sqrt(np.maximum(second - np.square(first), 1e-16))


@lru_cache(maxsize=32)
def _plane(space: Space, fraction: str | None, growth: Growth, inputs: Inputs) -> Plane:
    """The table as pairs of configuration and share; a pure function of the space, kept because every decision needs it."""
    features, kinds = model_inputs(space, inputs)
    share = np.ones(len(space)) if fraction is None else shares(space, fraction)
    group = configurations(space, fraction)
    first = np.unique(group, return_index=True)[1]
    # The share itself, and whatever follows from it, differs within a configuration: that is the other factor's part.
    fixed = (features == features[first][group]).all(axis=0)
    if not fixed.any():
        features, kinds, fixed = np.zeros((len(space), 1)), ("numeric",), np.array([True])
    chosen = [kind for kind, kept in zip(kinds, fixed, strict=True) if kept]
    return Plane(Table.of(features[first][:, fixed], chosen), group, basis(share, growth))
