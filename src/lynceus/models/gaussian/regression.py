"""Gaussian-process regression on a finite table of candidates, averaged over hyper-parameters.

Letters: q candidate rows, n observations, d features, h hyper-parameter vectors, b imagined states, e imagined
observations of each. With C = K + diag(site variances) = L Lᵀ over the observed rows (sites: `lynceus.models.gaussian.censoring`),

    a = L⁻¹ y,  V = L⁻¹ K[rows, q]:   mean = aᵀ V,   var = k(x, x) - Σ V²      (Rasmussen and Williams 2006, alg. 2.1)

per hyper-parameter vector; the h results are a mixture, of which mean and variance are returned. Imagined observations do
not refit the model: they update each member by rank-one steps with the columns of its posterior covariance and re-weight
the members by how well each predicted them.

>>> features = np.linspace(0.0, 1.0, 5)[:, np.newaxis]
>>> model = fit(features, ["numeric"], rows=np.array([0, 4]), y=np.array([1.0, 3.0]), seed=1)
>>> bool(model.mean[0] < model.mean[2] < model.mean[4]), bool(model.std[2] > model.std[0])
(True, True)
>>> mean, std = model.condition(np.array([[2]]), np.array([[5.0]]))
>>> mean.shape, bool(std[0, 2] < model.std[2])
((1, 5), True)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.models.gaussian.censoring import propagate
from lynceus.models.gaussian.conditioning import Updates
from lynceus.models.gaussian.kernel import Hyper, Inputs, inverse_lower, lower_factor, rounded
from lynceus.models.gaussian.packed import log_evidence, lower_pairs, unpacked
from lynceus.models.gaussian.prior import Settings, prior, tempered, weighted_draws, weights_of
from lynceus.space.column import BoolArray, FloatArray, IntArray

__all__ = ["GaussianModel", "Settings", "fit", "fit_given"]

_CHUNK = 1 << 16
"""Numbers per temporary array: half a megabyte, so that chunks stay in the cache."""
_EXACT_ROWS = 1 << 16
"""Tables with more rows are predicted in single precision, which takes half the time and is still a thousand times finer than noise."""
_LEAST_VARIANCE = 1e-12
DEFAULTS = Settings()


@dataclass(frozen=True, eq=False, slots=True)
class GaussianModel:
    """The prediction of the function on every candidate row, in the unit of the target."""

    mean: FloatArray
    """Of the function, `[q]`."""
    std: FloatArray
    """Of the function (without measurement noise), `[q]`."""
    noise: float
    """Std of one measurement around the function."""
    hyper: Hyper
    """The members of the mixture."""
    weights: FloatArray
    """Their posterior probabilities, `[h]`, sum 1."""
    inputs: Inputs
    rows: IntArray
    """Observed rows, `[n]`; a row may occur more than once."""
    inverse: FloatArray
    """L⁻¹ of each member, `[h, n, n]`."""
    whitened: FloatArray
    """a = L⁻¹ y of each member, `[h, n]`, standardised."""
    shift: float
    """Standardised target = (target - shift) / scale."""
    scale: float

    def condition(self, extra_rows: IntArray, extra_y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[b,q]` after b imagined sets of observations, at `extra_rows [b,e]` with values `extra_y [b,e]`.

        Exact: the same as fitting with the extra observations, over the same members. Only the columns of the posterior
        covariance at the distinct extra rows are made, in chunks of candidates.
        """
        extra_rows, extra_y = np.asarray(extra_rows, dtype=np.int64), np.asarray(extra_y, dtype=np.float64)
        if extra_rows.ndim != 2 or extra_rows.shape != extra_y.shape:
            raise ValueError(f"extra_rows {extra_rows.shape} and extra_y {extra_y.shape} must both be [b, e].")
        distinct, places = np.unique(extra_rows, return_inverse=True)
        updates = self._updates(distinct, places.reshape(extra_rows.shape), (extra_y - self.shift) / self.scale)
        mean = np.empty((len(extra_rows), len(self.mean)))
        std = np.empty_like(mean)
        for part in _chunks(len(self.mean), max(len(self.rows), len(distinct))):
            columns, own_mean, own_variance = self._columns(distinct, part)
            for some in _chunks(len(extra_rows), 8 * (part.stop - part.start)):
                first, second = updates.only(some).moments(columns, own_mean, own_variance)
                mean[some, part] = self.shift + self.scale * first
                std[some, part] = self.scale * np.sqrt(np.maximum(second - np.square(first), _LEAST_VARIANCE))
        return mean, std

    def draws(self, rows: IntArray, count: int, seed: int) -> FloatArray:
        """`[count, len(rows)]` joint draws of the function at some rows, members taken by their weights."""
        generator = np.random.default_rng(seed)
        rows = np.asarray(rows, dtype=np.int64)
        drawn = []
        before, between = self.inputs.gaps(self.rows[:, np.newaxis], rows), self.inputs.gaps(rows[:, np.newaxis], rows)
        for member, times in enumerate(generator.multinomial(count, self.weights)):
            if times:
                hyper = self.hyper.only(slice(member, member + 1))
                seen = self.inverse[member] @ hyper.covariance(before)[0]
                covariance = hyper.covariance(between)[0] - seen.T @ seen
                factor = lower_factor(covariance + _LEAST_VARIANCE * np.eye(len(rows)))
                standard = generator.standard_normal((times, len(rows)))
                drawn.append(self.whitened[member] @ seen + standard @ factor.T)
        return self.shift + self.scale * generator.permutation(np.concatenate(drawn))

    def _columns(self, distinct: IntArray, part: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior covariance `[h,u,c]` of u rows with a part of the candidates, its means and variances `[h,c]`."""
        candidates = np.arange(part.start, part.stop)
        seen = self.inverse @ self._between(self.rows, candidates)
        seen_there = self.inverse @ self._between(self.rows, distinct)
        columns = self._between(distinct, candidates) - seen_there.transpose(0, 2, 1) @ seen
        variance = self.hyper.variance(self.inputs.trend[candidates]) - np.square(seen).sum(axis=1)
        return columns, (self.whitened[:, np.newaxis] @ seen)[:, 0], np.maximum(variance, _LEAST_VARIANCE)

    def _updates(self, distinct: IntArray, places: IntArray, y: FloatArray) -> Updates:
        """The e × e systems of each state and member."""
        seen = self.inverse @ self._between(self.rows, distinct)
        mean = (self.whitened[:, np.newaxis] @ seen)[:, 0]
        rows, known = distinct[places], seen.transpose(0, 2, 1)[:, places]
        system = self.hyper.covariance(self.inputs.gaps(rows[:, :, np.newaxis], rows[:, np.newaxis, :]))
        system -= known @ known.transpose(0, 1, 3, 2)
        system += self.hyper.noise[:, np.newaxis, np.newaxis, np.newaxis] * np.eye(places.shape[1])
        inverse = inverse_lower(lower_factor(system))
        residual = (inverse @ (y - mean[:, places])[..., np.newaxis])[..., 0]
        log_size = np.log(np.diagonal(inverse, axis1=2, axis2=3)).sum(axis=2)
        log_weights = np.log(self.weights)[:, np.newaxis] - 0.5 * np.square(residual).sum(axis=2) + log_size
        return Updates(places, inverse, residual, weights_of(log_weights.T).T)

    def _between(self, left: IntArray, right: IntArray) -> FloatArray:
        """Prior covariance of each member between two lists of rows, `[h, len(left), len(right)]`."""
        return self.hyper.covariance(self.inputs.gaps(left[:, np.newaxis], right))


def fit(
    features: FloatArray,
    kinds: Sequence[str],
    rows: IntArray,
    y: FloatArray,
    seed: int,
    settings: Settings = DEFAULTS,
    censored: BoolArray | None = None,
    trend: FloatArray | None = None,
    centre: float | None = None,
) -> GaussianModel:
    """Learn from values `y [n]` at `rows [n]` of the table `features [q,d]`; `censored [n]` marks lower bounds.

    `kinds` has "numeric", "log" (both scaled to the unit range) or "categorical" per feature. Hyper-parameters are
    averaged under the prior of `settings`; the same seed gives the same model. Along `trend [q]` the function may also
    rise or fall linearly, with a slope of prior std `settings.slope`. `centre` is the prior mean of the function where it is known
    beforehand; otherwise the data's.
    """
    rows, y, bounds = _checked(features, rows, y, censored)
    inputs = Inputs.of(features, kinds, trend)
    shift, scale = _standard(y, settings.spread)
    shift = shift if centre is None else centre
    target, slope = (y - shift) / scale, (settings.slope / scale) ** 2
    numeric = inputs.numeric.shape[1]
    before = prior(settings, numeric, inputs.categorical.shape[1])
    middle = Hyper.of_logs(before.mean[np.newaxis], numeric, settings.constant, slope, smooth=settings.smooth)
    gaps = _packed_gaps(inputs, rows)
    stand_in = propagate(middle.covariance(gaps), target, middle.noise, bounds)

    def log_likelihood(theta: FloatArray) -> FloatArray:
        """With the bounds' sites as the prior's median vector has them, to avoid an iteration per draw."""
        hyper = Hyper.of_logs(theta, numeric, settings.constant, slope, smooth=settings.smooth)
        variance = np.where(bounds, stand_in.variance, hyper.noise[:, np.newaxis])
        return log_evidence(hyper.covariance(gaps), stand_in.mean[0], variance)

    theta, weights = weighted_draws(before, log_likelihood, settings, np.random.default_rng(seed))
    hyper = Hyper.of_logs(theta, numeric, settings.constant, slope, smooth=settings.smooth)
    solved = _solved(hyper, gaps, target, bounds)
    if bounds.any():
        log_weights = np.log(weights) + solved.evidence - log_likelihood(theta)
        weights = weights_of(tempered(log_weights, min(3.0, len(weights))))
    return _assembled(inputs, hyper, weights, rows, solved, (shift, scale))


def fit_given(
    inputs: Inputs,
    hyper: Hyper,
    weights: FloatArray,
    rows: IntArray,
    y: FloatArray,
    censored: BoolArray | None = None,
) -> GaussianModel:
    """The model for given hyper-parameters with prior `weights [h]`, which the evidence updates; y is not rescaled."""
    rows, y, bounds = _checked(inputs.numeric, rows, y, censored)
    solved = _solved(hyper, _packed_gaps(inputs, rows), y, bounds)
    return _assembled(inputs, hyper, weights_of(np.log(weights) + solved.evidence), rows, solved, (0.0, 1.0))


def _assembled(
    inputs: Inputs,
    hyper: Hyper,
    weights: FloatArray,
    rows: IntArray,
    solved: "_Solved",
    unit: tuple[float, float],
) -> GaussianModel:
    """Predict everywhere, in chunks of candidates."""
    count = len(inputs.numeric)
    mean, second = np.empty(count), np.empty(count)
    table, members, inverse, whitened = inputs, hyper, solved.inverse, solved.whitened
    if count > _EXACT_ROWS:
        table, members = inputs.rounded(), hyper.rounded()
        inverse, whitened = rounded(inverse), rounded(whitened)
    for part in _chunks(count, len(hyper) * len(rows)):
        seen = inverse @ members.covariance(table.gaps(rows[:, np.newaxis], np.arange(part.start, part.stop)))
        member = (whitened[:, np.newaxis] @ seen)[:, 0]
        variance = members.variance(table.trend[part]) - np.einsum("hnc,hnc->hc", seen, seen)
        mean[part] = weights @ member
        second[part] = weights @ (np.maximum(variance, _LEAST_VARIANCE) + np.square(member))
    shift, scale = unit
    std = scale * np.sqrt(np.maximum(second - np.square(mean), _LEAST_VARIANCE))
    noise = float(scale * np.sqrt(weights @ hyper.noise))
    return GaussianModel(
        shift + scale * mean, std, noise, hyper, weights, inputs, rows, solved.inverse, solved.whitened, shift, scale
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Solved:
    """The observations under h members."""

    inverse: FloatArray
    """L⁻¹, `[h, n, n]`."""
    whitened: FloatArray
    """a = L⁻¹ y, `[h, n]`."""
    evidence: FloatArray
    """Log marginal likelihood, `[h]` (Rasmussen and Williams 2006, eq. 2.30)."""


def _solved(hyper: Hyper, gaps: FloatArray, target: FloatArray, bounds: BoolArray) -> _Solved:
    """From the gaps between the observed rows, as packed triangles."""
    covariance = hyper.covariance(gaps)
    sites = propagate(covariance, target, hyper.noise, bounds)
    inverse = inverse_lower(lower_factor(unpacked(covariance, sites.variance)))
    whitened = (inverse @ sites.mean[..., np.newaxis])[..., 0]
    log_size = np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1) - 0.5 * len(target) * np.log(2.0 * np.pi)
    return _Solved(inverse, whitened, log_size - 0.5 * np.square(whitened).sum(axis=1) + sites.log_scale)


def _packed_gaps(inputs: Inputs, rows: IntArray) -> FloatArray:
    """The gaps between all pairs of observed rows, as packed lower triangles."""
    first, second = lower_pairs(len(rows))
    return inputs.gaps(rows[first], rows[second])


def _checked(
    features: FloatArray, rows: IntArray, y: FloatArray, censored: BoolArray | None
) -> tuple[IntArray, FloatArray, BoolArray]:
    rows, y = np.asarray(rows, dtype=np.int64), np.asarray(y, dtype=np.float64)
    bounds = np.zeros(y.shape, dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    if rows.ndim != 1 or rows.shape != y.shape or bounds.shape != y.shape or len(rows) == 0:
        raise ValueError(f"rows {rows.shape}, y {y.shape} and censored {bounds.shape} must be [n] with n >= 1.")
    if rows.min() < 0 or rows.max() >= len(features):
        raise ValueError(f"rows must lie in 0..{len(features) - 1}, got {rows.min()}..{rows.max()}.")
    if not np.isfinite(y).all():
        raise ValueError(f"y must be finite, got {y[~np.isfinite(y)][0]} at position {int(np.argmin(np.isfinite(y)))}.")
    return rows, y, bounds


def _standard(y: FloatArray, spread: float | None) -> tuple[float, float]:
    """Mean and scale of the target; the typical spread counts like two more observations."""
    squares = float(np.square(y - y.mean()).sum())
    if spread is not None:
        return float(y.mean()), float(np.sqrt((squares + 2.0 * spread**2) / (len(y) + 1)))
    own = np.sqrt(squares / max(len(y) - 1, 1)) * (1.0 + 2.0 / len(y))
    level = max(float(np.abs(y).max()), 1e-12)
    return float(y.mean()), float(own) if own > 1e-9 * level else level


def _chunks(count: int, width: int) -> Iterator[slice]:
    """Slices of 0..count whose length times `width` is at most the size of a temporary array."""
    step = max(1, _CHUNK // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
