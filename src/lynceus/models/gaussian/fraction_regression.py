"""Regression with the kernel of Fabolas, averaged over hyper-parameters.

Letters: q rows, G configurations, n observations, h hyper-parameter vectors ("members"), b imagined states, e imagined
observations of each. With C = K + diag(site variances) = L Lᵀ over the observed rows, a member's prediction about the processes w is

    a = L⁻¹ y,  V = L⁻¹ K[rows, w]:   mean = aᵀ V,   cov = K[w, w] - Vᵀ V

and f at a row is φ(s)ᵀ w at its configuration.
"""

from dataclasses import dataclass

import numpy as np

from lynceus.models.gaussian.censoring import Sites, propagate
from lynceus.models.gaussian.conditioning import Updates
from lynceus.models.gaussian.fraction_kernel import FractionHyper, Plane, fraction_prior
from lynceus.models.gaussian.kernel import inverse_lower, lower_factor
from lynceus.models.gaussian.mcmc import stretched
from lynceus.models.gaussian.packed import log_evidence, packed_lower
from lynceus.models.gaussian.prior import Settings, weighted_draws, weights_of
from lynceus.space.column import BoolArray, FloatArray, IntArray

_LEAST_VARIANCE = 1e-12
_CHUNK = 1 << 19
"""Numbers per temporary array."""


@dataclass(frozen=True, eq=False, slots=True)
class FractionModel:
    """The prediction of a function of configuration and data fraction at every row, in the unit of the target."""

    plane: Plane
    hyper: FractionHyper
    weights: FloatArray
    """Posterior probabilities of the members, `[h]`, sum 1."""
    rows: IntArray
    """Observed rows, `[n]`."""
    inverse: FloatArray
    """L⁻¹, `[h, n, n]`."""
    whitened: FloatArray
    """a = L⁻¹ y, `[h, n]`, standardised."""
    seen: FloatArray
    """V, `[h, n, 3, G]`."""
    site_mean: FloatArray
    """Observed values, standardised; a normal approximation where the value is a lower bound, `[h, n]`."""
    site_variance: FloatArray
    """Its noise, `[h, n]`."""
    unit: tuple[float, float]
    """(shift, scale): standardised target = (target - shift) / scale."""

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and std of the function at every row, `[q]` each."""
        mean, variance = self._member_moments()
        first = self.weights @ mean
        second = self.weights @ (variance + np.square(mean))
        shift, scale = self.unit
        return shift + scale * first, scale * np.sqrt(np.maximum(second - np.square(first), _LEAST_VARIANCE))

    def noise(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement around the function at some rows, `[len(rows)]`."""
        return np.asarray(self.unit[1] ** 2 * (self.weights @ self.hyper.noise_at(self.plane, rows)))

    def draws(self, rows: IntArray, count: int, seed: int) -> FloatArray:
        """Joint draws of the function at some rows `[count, len(rows)]`, members taken by their weights.

        Matheron's rule: a draw of the prior, corrected by the observations (Wilson et al. 2020).
        """
        generator = np.random.default_rng(seed)
        times = _draws_per_member(self.weights, count)
        parts = [self._member_draws(rows, member, n, generator) for member, n in enumerate(times) if n]
        return self.unit[0] + self.unit[1] * generator.permutation(np.concatenate(parts))

    def covariance(self, left: IntArray, right: IntArray) -> FloatArray:
        """Covariance of the function between two lists of rows `[l, r]`, the spread between members included."""
        mean, _ = self._member_moments()
        first = self.weights @ mean
        total = np.zeros((len(left), len(right)))
        for member, weight in enumerate(self.weights):
            off = mean[member] - first
            total += weight * (self._columns(member, left, right) + np.outer(off[left], off[right]))
        return total * self.unit[1] ** 2

    def after(self, extra: IntArray, values: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and std at `rows`, `[b, len(rows)]` each, after b sets of observations at `extra [b, e]` with `values [b, e]`.

        Exact over the same members: the same as fitting again with the extra observations.
        """
        shift, scale = self.unit
        distinct, places = np.unique(extra, return_inverse=True)
        mean, variance = self._member_moments()
        updates = self._updates(distinct, places.reshape(extra.shape), (values - shift) / scale, mean)
        first, second = np.empty((len(extra), len(rows))), np.empty((len(extra), len(rows)))
        step = max(1, _CHUNK // max(len(extra), len(distinct)))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            columns = np.stack([self._columns(member, distinct, some) for member in range(len(self.weights))])
            part = slice(start, start + step)
            first[:, part], second[:, part] = updates.moments(columns, mean[:, some], variance[:, some])
        return shift + scale * first, scale * np.sqrt(np.maximum(second - np.square(first), _LEAST_VARIANCE))

    def _member_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each member at every row, `[h, q]`, standardised."""
        phi, group = self.plane.basis, self.plane.group
        latent = np.einsum("hn,hnjg->hjg", self.whitened, self.seen)
        lost = np.einsum("hnig,hnjg->hgij", self.seen, self.seen, optimize=True)
        block = (self.hyper.mix + np.diag(self.hyper.trend))[:, np.newaxis] - lost
        mean = np.einsum("qj,hjq->hq", phi, latent[:, :, group])
        variance = np.einsum("qi,hqij,qj->hq", phi, block[:, group], phi, optimize=True)
        return mean, np.maximum(variance, _LEAST_VARIANCE)

    def _seen_at(self, member: int, rows: IntArray) -> FloatArray:
        """L⁻¹ k(observed, rows), `[n, len(rows)]`."""
        phi, group = self.plane.basis[rows], self.plane.group[rows]
        return np.asarray(np.einsum("rj,rnj->nr", phi, self.seen[member].transpose(2, 0, 1)[group], optimize=True))

    def _columns(self, member: int, left: IntArray, right: IntArray) -> FloatArray:
        """Posterior covariance of one member between two lists of rows, `[l, r]`, standardised."""
        only = self.hyper.only(slice(member, member + 1))
        prior: FloatArray = only.covariance(self.plane, left, right)[0]
        prior -= self._seen_at(member, left).T @ self._seen_at(member, right)
        return prior

    def _paired(self, left: IntArray, right: IntArray) -> FloatArray:
        """Posterior covariance of each member between rows at the same position of two lists, `[h, l]`, standardised."""
        plane, hyper = self.plane, self.hyper
        like = hyper.shape.covariance(plane.inputs.gaps(plane.group[left], plane.group[right]))
        one, two = plane.basis[left], plane.basis[right]
        prior: FloatArray = like * np.einsum("li,hij,lj->hl", one, hyper.mix, two, optimize=True)
        prior += (one * two) @ hyper.trend
        for member in range(len(self.weights)):
            first = self._seen_at(member, left)
            second = first if left is right else self._seen_at(member, right)
            prior[member] -= (first * second).sum(axis=0)
        return prior

    def _member_draws(self, rows: IntArray, member: int, count: int, generator: np.random.Generator) -> FloatArray:
        hyper, plane = self.hyper, self.plane
        groups = np.arange(plane.inputs.numeric.shape[0])
        like = hyper.shape.only(slice(member, member + 1)).covariance(plane.inputs.gaps(groups[:, np.newaxis], groups))[
            0
        ]
        factor = lower_factor(like + _LEAST_VARIANCE * np.eye(len(groups)))
        w = generator.standard_normal((count, 2, len(groups))) @ factor.T
        w = np.einsum("ji,kjg->kig", hyper.root[member, :2], w)
        w += np.sqrt(hyper.trend)[:, np.newaxis] * generator.standard_normal((count, 3, 1))
        here = plane.group[self.rows]
        target = np.einsum("nj,kjn->kn", plane.basis[self.rows], w[:, :, here])
        target += np.sqrt(self.site_variance[member]) * generator.standard_normal(target.shape)
        residual = (self.site_mean[member] - target) @ self.inverse[member].T
        moved = w.reshape(count, -1) + residual @ self.seen[member].reshape(len(self.rows), -1)
        moved = moved.reshape(count, 3, -1)[:, :, plane.group[rows]]
        return np.asarray(np.einsum("kjr,rj->kr", moved, plane.basis[rows]))

    def _updates(self, distinct: IntArray, places: IntArray, y: FloatArray, mean: FloatArray) -> Updates:
        """The e × e systems of each state and member (see `Updates`)."""
        size = places.shape[1]
        system = np.empty((len(self.weights), len(places), size, size))
        for i in range(size):
            for j in range(i + 1):
                system[:, :, i, j] = self._paired(distinct[places[:, i]], distinct[places[:, j]])
        system += self.hyper.noise_at(self.plane, distinct)[:, places][..., np.newaxis] * np.eye(size)
        inverse = inverse_lower(lower_factor(system))
        residual = (inverse @ (y - mean[:, distinct[places]])[..., np.newaxis])[..., 0]
        log_size = np.log(np.diagonal(inverse, axis1=2, axis2=3)).sum(axis=2)
        log_weights = np.log(self.weights)[:, np.newaxis] - 0.5 * np.square(residual).sum(axis=2) + log_size
        return Updates(places, inverse, residual, weights_of(log_weights.T).T)


def fit_fractions(
    plane: Plane,
    rows: IntArray,
    y: FloatArray,
    seed: int,
    settings: Settings,
    censored: BoolArray | None = None,
    chain: int = 0,
) -> FractionModel:
    """Learn from values `y [n]` at `rows [n]`, of which those `censored [n]` are lower bounds.

    With `chain` steps of Markov-chain Monte Carlo the members end as draws from the posterior of the hyper-parameters;
    without, they are weighted draws of adaptive importance sampling.
    """
    bounds = np.zeros(len(y), dtype=bool) if censored is None else censored
    unit = _standard(y, settings.spread)
    target = (y - unit[0]) / unit[1]
    numeric, categorical = plane.inputs.numeric.shape[1], plane.inputs.categorical.shape[1]
    before = fraction_prior(settings, numeric, categorical)
    middle = FractionHyper.of_logs(before.mean[np.newaxis], numeric, settings.constant)
    stand_in = _sites(middle, plane, rows, middle.covariance(plane, rows, rows), target, bounds)

    def log_likelihood(theta: FloatArray) -> FloatArray:
        """With the bounds' sites as the prior's median vector has them, to avoid an iteration per draw."""
        hyper = FractionHyper.of_logs(theta, numeric, settings.constant)
        variance = np.where(bounds, stand_in.variance, hyper.noise_at(plane, rows))
        return log_evidence(packed_lower(hyper.covariance(plane, rows, rows)), stand_in.mean[0], variance)

    generator = np.random.default_rng(seed)
    theta, weights = weighted_draws(before, log_likelihood, settings, generator)
    if chain:
        theta = stretched(theta, weights, lambda t: before.log_density(t) + log_likelihood(t), chain, generator)
        theta = theta[np.linspace(0, len(theta) - 1, settings.kept).astype(int)]
        weights = np.full(len(theta), 1.0 / len(theta))
    return fit_members(
        plane, FractionHyper.of_logs(theta, numeric, settings.constant), weights, rows, target, bounds, unit
    )


def fit_members(
    plane: Plane,
    hyper: FractionHyper,
    weights: FloatArray,
    rows: IntArray,
    y: FloatArray,
    censored: BoolArray | None = None,
    unit: tuple[float, float] = (0.0, 1.0),
) -> FractionModel:
    """The model for given members; `y` is standardised already."""
    bounds = np.zeros(len(y), dtype=bool) if censored is None else censored
    covariance = hyper.covariance(plane, rows, rows)
    sites = _sites(hyper, plane, rows, covariance, y, bounds)
    inverse = inverse_lower(lower_factor(covariance + sites.variance[:, :, np.newaxis] * np.eye(len(rows))))
    whitened = (inverse @ sites.mean[..., np.newaxis])[..., 0]
    groups, places = np.unique(plane.group[rows], return_inverse=True)
    like = hyper.likeness(plane, groups, np.arange(len(plane.inputs.numeric)))[:, places]
    phi = plane.basis[rows]
    loads = phi @ hyper.mix
    cross = like[:, :, np.newaxis] * loads[..., np.newaxis] + (phi * hyper.trend)[:, :, np.newaxis]
    h, n = whitened.shape
    seen = (inverse @ cross.reshape(h, n, -1)).reshape(cross.shape)
    return FractionModel(plane, hyper, weights, rows, inverse, whitened, seen, sites.mean, sites.variance, unit)


def _sites(
    hyper: FractionHyper, plane: Plane, rows: IntArray, covariance: FloatArray, y: FloatArray, censored: BoolArray
) -> Sites:
    """Sites with a noise that differs between rows: what a row has more than all data is first counted as a part of the function."""
    more = hyper.noise_at(plane, rows) - hyper.noise[:, np.newaxis]
    noisy = covariance + more[:, :, np.newaxis] * np.eye(len(rows))
    found = propagate(packed_lower(noisy), y, hyper.noise, censored)
    return Sites(found.mean, found.variance + more, found.log_scale)


def _standard(y: FloatArray, spread: float | None) -> tuple[float, float]:
    """Mean and scale of the target; a known typical spread counts like two more observations. A constant target has scale 1 or its size."""
    squares = float(np.square(y - y.mean()).sum())
    if spread is not None:
        return float(y.mean()), float(np.sqrt((squares + 2.0 * spread**2) / (len(y) + 1)))
    own = float(np.sqrt(squares / max(len(y) - 1, 1)))
    level = max(float(np.abs(y).max()), 1e-12)
    return float(y.mean()), own if own > 1e-9 * level else level


def _draws_per_member(weights: FloatArray, count: int) -> list[int]:
    """How many of `count` draws each member gives: as near to its weight as whole numbers allow."""
    ends = np.round(np.cumsum(weights) * count).astype(int)
    return [int(n) for n in np.diff(ends, prepend=0)]
