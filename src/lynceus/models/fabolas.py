"""Gaussian processes over configuration and data fraction as a surrogate (Fabolas, Fabulinus)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.special import expit

from lynceus.models.blas import one_thread
from lynceus.models.distribution import Normal
from lynceus.models.features import Inputs, model_inputs, target_values
from lynceus.models.gaussian.fraction_kernel import Growth, Plane, basis, shortfall
from lynceus.models.gaussian.fraction_regression import FractionModel, fit_fractions
from lynceus.models.gaussian.kernel import Inputs as Table
from lynceus.models.gaussian.prior import Settings
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import derive
from lynceus.models.state import State
from lynceus.problem.data_fraction import configurations, shares
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.space.table import Space

_EDGE = 0.01
"""Keeps a proportion away from 0 and 1, so that its log-odds exist: ln((a + edge) / (1 + edge - a))."""


@dataclass(frozen=True, slots=True)
class Fabolas:
    """One process for the logarithm of time, one for each metric, all with the kernel of Fabolas over the data fraction."""

    metrics: Literal["auto", "raw"] = "auto"
    """Model metrics that lie between 0 and 1 (accuracies) as log-odds, in which an error of 1 % and one of 2 % are far apart."""
    chain: int = 0
    """Steps of Markov-chain Monte Carlo over the hyper-parameters, after adaptive importance sampling; 0 for none."""
    censored: Literal["bounds", "estimates"] = "bounds"
    """Treat stopped runs as lower bounds (Tobit, by expectation propagation), or use the estimates of their times."""
    inputs: Inputs = "features"
    settings: Settings = field(default_factory=lambda: Settings(kept=8))
    time: Literal["logarithm", "seconds"] = "logarithm"
    """What the process of time models. Seconds, which may come out negative, are there to be compared with."""
    care: int = 4
    """Factor on the number of hyper-parameter vectors for a recommendation. With 8 vectors the probability of feasibility varies by
    0.015 to 0.02 between seeds, more than the margin between a recommendation with 99 % confidence and one without."""

    def accurate(self) -> Fabolas:
        """The model for recommendations."""
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

    def __call__(self, state: State, seed: int) -> Prediction:
        """Mean and std at every row in every state. The std includes the noise of a run, except for a metric that is the objective."""
        if not len(state.rows):
            raise ValueError("Fabolas needs at least one observation; put an initial design before the planner")
        with one_thread():
            return self._predict(state, seed)

    def _predict(self, state: State, seed: int) -> Prediction:
        fitted = self._fitted(state, seed)
        rows = np.arange(len(state.open))
        if state.imagined_rows.shape[1] == 0:
            parts = [one.moments() for one in fitted]
            shape = (len(state), len(rows))
            parts = [(np.broadcast_to(mean, shape), np.broadcast_to(std, shape)) for mean, std in parts]
        else:
            parts = [
                one.after(state.imagined_rows, state.imagined_targets[:, :, index], rows)
                for index, one in enumerate(fitted)
            ]
        mean, std = (np.stack(part, axis=2) for part in zip(*parts, strict=True))
        return Prediction("log time", mean, std)

    def predict_jointly(self, state: State, seed: int) -> FractionJointPrediction:
        """The joint prediction in a single state."""
        if len(state) != 1:
            raise ValueError(f"a joint prediction needs one state, got {len(state)}")
        own_seed = derive(seed, "foresight", state.started)
        return FractionJointPrediction(state.problem, tuple(self._fitted(state, seed)), own_seed)

    def _fitted(self, state: State, seed: int) -> list[Target]:
        key = (self, state.problem.space, state.problem.fraction, seed, state.started)
        data = (state.rows.tobytes(), state.seconds.tobytes(), state.metrics.tobytes())
        return _fit_all(_FitArguments((*key, *data, state.bound_s.tobytes(), state.problem.metrics), self, state, seed))

    def target(self, state: State, index: int, seed: int) -> Target:
        """The fitted process of one target (0: the logarithm of a run's time)."""
        problem = state.problem
        target, bounds = self._targets(state, index)
        known = np.isfinite(target)
        noisy = index == 0 or problem.metrics[index - 1] != problem.objective.metric
        odds = index > 0 and self.metrics == "auto" and bool(((target[known] >= 0) & (target[known] <= 1)).all())
        if not known.any():
            # No run reported this metric.
            return Target(None, len(problem.space), odds=False, noisy=noisy)
        settings = self.settings if index == 0 else replace(self.settings, spread=None)
        plane = _plane(problem.space, problem.fraction, "linear" if index == 0 else "settling", self.inputs)
        raw = index == 0 and self.time == "seconds"
        y = log_odds(target[known]) if odds else np.exp(target[known]) if raw else target[known]
        own_seed = derive(seed, "fabolas", state.started, index)
        model = fit_fractions(plane, state.rows[known], y, own_seed, settings, bounds[known], self.chain)
        return Target(model, len(problem.space), odds, noisy, raw)

    def _targets(self, state: State, index: int) -> tuple[FloatArray, BoolArray]:
        """Observations of a target `[n]` in its own unit, and which of them are lower bounds."""
        if index > 0:
            target = state.metrics[:, index - 1]
            return target, np.zeros(len(target), dtype=bool)
        bounds = ~np.isnan(state.bound_s) & (self.censored == "bounds")
        return target_values(state, "log time", np.where(bounds, state.bound_s, state.seconds)), bounds


@dataclass(frozen=True, slots=True)
class _FitArguments:
    """Arguments of a fit, compared by a key of everything that the result depends on."""

    key: tuple[object, ...]
    surrogate: Fabolas
    state: State
    seed: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FitArguments) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=4)
def _fit_all(arguments: _FitArguments) -> list[Target]:
    """All targets; cached, because a planner and the recommendation fit the same model several times in a row."""
    return [
        arguments.surrogate.target(arguments.state, index, arguments.seed) for index in range(arguments.state.targets)
    ]


@dataclass(frozen=True, eq=False)
class Target:
    """A fitted process, with the conversion from its unit to that of the target."""

    model: FractionModel | None
    """None if the target was never reported."""
    rows: int
    odds: bool
    """Whether the process models log-odds."""
    noisy: bool
    """Whether the std includes the noise of a run: yes where a constraint must hold for the run itself."""
    raw: bool = False
    """Whether the process models seconds, while the target is their logarithm."""

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and std at every row `[q]`, in the target's unit."""
        if self.model is None:
            return np.zeros(self.rows), np.ones(self.rows)
        return self._converted(*self.model.moments(), np.arange(self.rows))

    def after(self, extra: IntArray, values: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same at some rows `[b, r]` after imagined values `[b, e]`."""
        if self.model is None:
            return np.zeros((len(extra), len(rows))), np.ones((len(extra), len(rows)))
        own = log_odds(values) if self.odds else np.exp(values) if self.raw else values
        return self._converted(*self.model.after(extra, own, rows), rows)

    def expected(self, extra: IntArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same at some rows `[b, r]` after one run of each row of `extra [b]` with its expected outcome."""
        if self.model is None:
            return np.zeros((len(extra), len(rows))), np.ones((len(extra), len(rows)))
        mean, _ = self.model.moments()
        return self._converted(*self.model.after(extra[:, np.newaxis], mean[extra][:, np.newaxis], rows), rows)

    def _converted(self, mean: FloatArray, std: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        if self.noisy and self.model is not None:
            std = np.sqrt(np.square(std) + self.model.noise(rows))
        if self.raw:
            return _log_moments(mean, std)
        return from_log_odds(mean, std) if self.odds else (mean, std)


@dataclass(frozen=True, eq=False)
class FractionJointPrediction:
    """The joint prediction of the processes; the objective in the unit of its process (log-odds, log dollars), smaller is better."""

    problem: Problem
    targets: tuple[Target, ...]
    seed: int

    _kept_draws: dict[tuple[int, int], FloatArray] = field(default_factory=dict, repr=False)

    @cached_property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""
        mask = self.problem.answerable
        return np.arange(len(self.problem.space)) if mask is None else np.flatnonzero(mask)

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the objective `[count, r]`."""
        model, _ = self._objective
        if model is None:
            return np.zeros((count, len(rows)))
        return self.as_objective(model.draws(rows, count, self.seed), rows)

    def as_objective(self, drawn: FloatArray, rows: IntArray) -> FloatArray:
        """Draws of the objective's process at some rows as those of the objective, smaller is better `[count, r]`."""
        return self._objective[1] * drawn + self._offset(rows)

    def feasible_draws(self, count: int) -> BoolArray:
        """Whether the answers meet every constraint in each draw `[count, a]`; the targets are drawn independently."""
        feasible = np.ones((count, len(self.answers)), dtype=bool)
        for index in self.constrained_targets:
            feasible &= self.meets(index, self._drawn(index, count))
        return feasible

    def meets(self, index: int, drawn: FloatArray) -> BoolArray:
        """Whether draws of a target at the answers `[..., a]`, in the unit of its process, meet the constraints on it."""
        if index == 0:
            ceiling = np.maximum(self.problem.ceiling_s[self.answers], 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(drawn <= (ceiling if self.targets[0].raw else np.log(ceiling)))
        met = np.ones(drawn.shape, dtype=bool)
        for constraint in self.problem.metric_constraints:
            if constraint.metric == self.problem.metrics[index - 1]:
                odds = self.targets[index].odds
                bound = float(log_odds(np.array(constraint.bound))) if odds else constraint.bound
                met &= drawn >= bound if constraint.at_least else drawn <= bound
        return met

    @cached_property
    def constrained_targets(self) -> tuple[int, ...]:
        """Targets with a model and a constraint (0: time)."""
        limited = [0] if np.isfinite(self.problem.ceiling_s[self.answers]).any() else []
        limited += [1 + self.problem.metrics.index(constraint.metric) for constraint in self.problem.metric_constraints]
        return tuple(index for index in dict.fromkeys(limited) if self.targets[index].model is not None)

    def target_draws(self, index: int, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of a target at some rows `[count, r]`, in the unit of its process; the same at every row in all calls."""
        model = self.targets[index].model
        if model is None:
            return np.zeros((count, len(rows)))
        name = "time" if index == 0 else self.problem.metrics[index - 1]
        seed = self.seed if index == self.objective_index else derive(self.seed, name)
        return model.draws(rows, count, seed)

    def _drawn(self, index: int, count: int) -> FloatArray:
        """Draws of a target at the answers `[count, a]`; those of the objective are the same as in `draws`."""
        key = (index, count)
        if key not in self._kept_draws:
            self._kept_draws[key] = self.target_draws(index, self.answers, count)
        return self._kept_draws[key]

    def constrained(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Draws at the answers, covariance with them and variance of a measurement, of constrained quantities
        that are not the objective."""
        found = []
        for index in self.constrained_targets:
            model = self.targets[index].model
            if model is not None and index != self.objective_index:
                seen = np.square(model.moments()[1][rows]) + model.noise(rows)
                found.append((self._drawn(index, count), model.covariance(rows, self.answers), seen))
        return found

    def covariance(self, rows: IntArray) -> FloatArray:
        """Covariance of the objective at some rows with the objective at the answers `[r, a]`."""
        model, _ = self._objective
        if model is None:
            return np.zeros((len(rows), len(self.answers)))
        return self._cross[rows]

    def variance(self, rows: IntArray) -> FloatArray:
        """Variance of the objective at some rows `[r]`."""
        model, _ = self._objective
        return np.zeros(len(rows)) if model is None else np.square(model.moments()[1][rows])

    def measurement_variance(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the objective at some rows `[r]`."""
        model, _ = self._objective
        return self.variance(rows) + (1e-12 if model is None else model.noise(rows))

    def after(self, rows: IntArray) -> Prediction:
        """The prediction for the answers `[r, a, m]` after a run of each row had its expected outcome.

        A metric that is only the objective does not change: an expected outcome moves no mean, and its std is not used.
        """
        limited = {constraint.metric for constraint in self.problem.metric_constraints}
        parts = []
        for name, one in zip(("", *self.problem.metrics), self.targets, strict=True):
            if not name or name in limited:
                parts.append(one.expected(rows, self.answers))
            else:
                shape = (len(rows), len(self.answers))
                mean, std = (np.broadcast_to(part[self.answers], shape) for part in one.moments())
                parts.append((mean, std))
        mean, std = (np.stack(part, axis=2) for part in zip(*parts, strict=True))
        return Prediction("log time", mean, std, self.answers)

    @cached_property
    def _cross(self) -> FloatArray:
        model, _ = self._objective
        return np.zeros((0, 0)) if model is None else model.covariance(np.arange(len(self.problem.space)), self.answers)

    @property
    def _objective(self) -> tuple[FractionModel | None, float]:
        """The process of the objective, and −1 where it is maximised."""
        return self.targets[self.objective_index].model, -1.0 if self.problem.objective.maximise else 1.0

    @property
    def objective_index(self) -> int:
        """The target that is the objective."""
        return self.problem.goal.target

    def _offset(self, rows: IntArray) -> FloatArray:
        """What turns log seconds into log dollars; 0 for other objectives."""
        return np.log(self.problem.price[rows]) if self.problem.kind == "cost" else np.zeros(len(rows))


def log_odds(value: FloatArray) -> FloatArray:
    """ln((a + edge)/(1 + edge - a)), with a clipped to [0, 1]."""
    inside = np.clip(value, 0.0, 1.0)
    return np.asarray(np.log((inside + _EDGE) / (1.0 + _EDGE - inside)))


def from_log_odds(mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and std of a proportion whose log-odds are normal, by quadrature (there is no closed form)."""
    points, weights = Normal(np.zeros(1), np.ones(1)).nodes(7)
    first, second = np.zeros(mean.shape), np.zeros(mean.shape)
    for z, weight in zip(points[0], weights, strict=True):
        value = (1.0 + 2.0 * _EDGE) * expit(mean + z * std) - _EDGE
        first += weight * value
        second += weight * np.square(value)
    return first, np.sqrt(np.maximum(second - np.square(first), 1e-16))


def _log_moments(mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Moments of the logarithm of a log-normal with these moments; a mean below a thousandth of the std counts as that."""
    above = np.maximum(mean, 1e-3 * std)
    spread = np.log1p(np.square(std / above))
    return np.log(above) - 0.5 * spread, np.sqrt(spread)


@lru_cache(maxsize=32)
def _plane(space: Space, fraction: str | None, growth: Growth, inputs: Inputs) -> Plane:
    """The table as pairs of configuration and data fraction; cached, because every decision needs it."""
    features, kinds = model_inputs(space, inputs)
    share = np.ones(len(space)) if fraction is None else shares(space, fraction)
    group = configurations(space, fraction)
    first = np.unique(group, return_index=True)[1]
    # The fraction, and every column that depends on it, varies within a configuration: the other factor of the kernel models it.
    fixed = (features == features[first][group]).all(axis=0)
    if not fixed.any():
        features, kinds, fixed = np.zeros((len(space), 1)), ("numeric",), np.array([True])
    chosen = [kind for kind, kept in zip(kinds, fixed, strict=True) if kept]
    return Plane(Table.of(features[first][:, fixed], chosen), group, basis(share, growth), shortfall(share))
