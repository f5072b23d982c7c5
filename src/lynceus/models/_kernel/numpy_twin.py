"""The kernel in slow and simple NumPy: every tree is trained from scratch for every state.

It defines what the compiled kernel computes, and replaces it where no C compiler was available. The rule of a tree:

- The randomness of a node is a hash (splitmix64) of the node's key: the tree's seed at the root, a hash of the parent's
  key and the side below. A node's draws hence do not depend on what happened elsewhere in the tree.
- A node is a leaf if its weight is under two smallest leaves, or its variance under a fraction of the bag's.
- Attributes are tried in a random order: `attributes` of them, and more until one gives a gain.
- A candidate split replaces the best one only if better by 1e-12 of the node's sum of squares, so that the order of
  summation cannot decide a tie: among equals the first attribute and its lowest threshold win.
- An empty bag predicts the plain mean of all observations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from .acquisition import Acquisition, Billing, Picked
from .values import Codes, Floats, Growth, Imagined, Ints, Observed, check_together, no_imagined

TIE = 1e-12
"""Gains closer than this, relative to the node's sum of squares (in `pick`: to the acquisition value), are equal."""
AGREE = 1e-13
"""Trees whose deviation is below this, relative to their value, agree exactly: the rest is rounding."""
HUGE = 1e100
"""The largest log-normal deviation: with a vast spread every feasible row is an improvement, and stays comparable."""
_MASK = (1 << 64) - 1


def hashed(key: int, index: int) -> int:
    """The draw number `index` of a node: 1, 2 children's keys; 3, 5, … order of attributes; 4, 6, … thresholds."""
    z = (key + index * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def attribute_order(key: int, d: int) -> list[int]:
    """Fisher-Yates permutation of the attributes, drawn from the node's key."""
    order = list(range(d))
    for j in range(d):
        other = j + (((hashed(key, 3 + 2 * j) >> 32) * (d - j)) >> 32)
        order[j], order[other] = order[other], order[j]
    return order


@dataclass(frozen=True, slots=True)
class _Bag:
    """What one tree is trained on: observations with a positive weight, in order."""

    codes: NDArray[np.int32]
    """[d, in bag]"""
    weight: Floats
    target: Floats
    """Centred by the mean of the real observations."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """The growing of one tree; `mean` and `variance` [q] receive the leaves."""

    table: Codes
    bag: _Bag
    growth: Growth
    mean: Floats
    variance: Floats

    def grow(self, key: int, members: Ints, candidates: Ints) -> None:
        weight, target = self.bag.weight[members], self.bag.target[members]
        split = None
        if not self._stops(weight, target):
            split = self._split(key, members)
        if split is None:
            centre = np.average(target, weights=weight)
            self.mean[candidates] = centre
            self.variance[candidates] = np.average((target - centre) ** 2, weights=weight)
            return
        attribute, cut = split
        left = self.bag.codes[attribute, members] < cut
        left_candidates = self.table.codes[attribute, candidates] < cut
        self.grow(hashed(key, 1), members[left], candidates[left_candidates])
        self.grow(hashed(key, 2), members[~left], candidates[~left_candidates])

    def _stops(self, weight: Floats, target: Floats) -> bool:
        if weight.sum() < 2 * self.growth.min_leaf:
            return True
        whole = _variance(self.bag.weight, self.bag.target)
        return self.growth.min_variance > 0 and _variance(weight, target) < self.growth.min_variance * whole

    def _split(self, key: int, members: Ints) -> tuple[int, int] | None:
        """Attribute and cut (left: code < cut) of the best split; None if none gains enough."""
        weight, target = self.bag.weight[members], self.bag.target[members]
        tie = TIE * float(np.sum(weight * target**2))
        best, found = self.growth.min_gain, None
        for tried, attribute in enumerate(attribute_order(key, self.table.d)):
            if tried >= self.growth.attributes and found is not None:
                break
            u = (hashed(key, 4 + 2 * tried) >> 11) * 2.0**-53
            for gain, cut in self._candidates(attribute, members, u):
                if gain > best + tie:
                    best, found = gain, (attribute, cut)
        return found

    def _candidates(self, attribute: int, members: Ints, u: float) -> list[tuple[float, int]]:
        """Gain and cut of every threshold to try, ascending: the reduction of the sum of squared deviations."""
        groups, inverse = np.unique(self.bag.codes[attribute, members], return_inverse=True)
        if len(groups) < 2:
            return []
        weight = np.bincount(inverse, weights=self.bag.weight[members])
        total = np.bincount(inverse, weights=self.bag.weight[members] * self.bag.target[members])
        w, s = weight.cumsum(), total.cumsum()
        values = self.table.values[self.table.starts[attribute] : self.table.starts[attribute + 1]]
        if self.growth.splits == "best":
            after = range(len(groups) - 1)
            thresholds = [0.5 * values[groups[i]] + 0.5 * values[groups[i + 1]] for i in after]
            cuts = [_cut(values, t, groups[i], groups[i + 1]) for i, t in zip(after, thresholds, strict=True)]
        else:
            low, high = values[groups[0]], values[groups[-1]]
            cuts = [_cut(values, low + u * (high - low), groups[0], groups[-1])]
            after = range(np.searchsorted(groups, cuts[0]) - 1, len(groups))
        found = []
        for i, cut in zip(after, cuts, strict=False):
            wl, wr, sl, sr = w[i], w[-1] - w[i], s[i], s[-1] - s[i]
            if min(wl, wr) >= self.growth.min_leaf:
                found.append((float(sl**2 / wl + sr**2 / wr - s[-1] ** 2 / w[-1]), cut))
        return found


def _cut(values: Floats, threshold: float, low: int, high: int) -> int:
    """First code at or above the threshold, but never one that leaves `low` or `high` on the wrong side."""
    return int(np.clip(np.searchsorted(values, threshold), low + 1, high))


def _variance(weight: Floats, target: Floats) -> float:
    return float(np.average(target**2, weights=weight) - np.average(target, weights=weight) ** 2)


def _ensemble(
    table: Codes, rows: Ints, target: Floats, bags: NDArray[np.int32], seeds: list[int], growth: Growth
) -> tuple[Floats, Floats]:
    """Mean and deviation [q] of one metric's trees. target [n] is centred, bags [trees,n]."""
    means, variances = np.zeros((2, len(seeds), table.q))
    for tree, seed in enumerate(seeds):
        kept = np.flatnonzero(bags[tree])
        if len(kept) == 0:
            means[tree] = target.mean()
            continue
        bag = _Bag(table.codes[:, rows[kept]], bags[tree, kept].astype(np.float64), target[kept])
        grower = _Tree(table, bag, growth, means[tree], variances[tree])
        grower.grow(seed, np.arange(len(kept)), np.arange(table.q))
    if growth.spread == "total":
        std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    else:
        std = means.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(table.q)
    return means.mean(axis=0), np.where(std <= AGREE * np.abs(means[0]), 0.0, std)


def predict(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """See `lynceus.models._kernel.predict`; `threads` is accepted and not used."""
    imagined = imagined or no_imagined(observed)
    check_together(codes, observed, imagined)
    m = len(observed.target)
    mean, std = np.empty((2, imagined.b, codes.q, m))
    for b in range(imagined.b):
        rows = np.concatenate([observed.rows, imagined.rows[b]])
        for j in range(m):
            centre = observed.target[j].mean()
            target = np.concatenate([observed.target[j], imagined.target[b, :, j]]) - centre
            bags = np.concatenate([observed.bags[j], imagined.bags[j]], axis=1)
            mean[b, :, j], std[b, :, j] = _ensemble(codes, rows, target, bags, observed.seeds[j].tolist(), growth)
            mean[b, :, j] += centre
    return mean, std


def pick(
    codes: Codes,
    observed: Observed,
    imagined: Imagined | None,
    growth: Growth,
    acquisition: Acquisition,
    threads: int = 1,
) -> Picked:
    """See `lynceus.models._kernel.pick`; `threads` is accepted and not used."""
    imagined = imagined or no_imagined(observed)
    mean, std = predict(codes, observed, imagined, growth)
    b, m = imagined.b, mean.shape[2]
    acquisition.check(codes, b, m)
    picked = Picked(np.full(b, -1), np.full(b, np.nan), np.full((b, m), np.nan), np.full((b, m), np.nan))
    for i in range(b):
        is_open = acquisition.open.copy()
        is_open[imagined.rows[i]] = False
        allowed = is_open & (_upper_cost(acquisition, mean[i, :, 0], std[i, :, 0]) <= acquisition.left[i])
        if not allowed.any():
            continue
        values = _values(acquisition, _value_to_beat(acquisition, i, mean[i], std[i], is_open), mean[i], std[i])
        row = int(np.flatnonzero(allowed)[0])
        for other in np.flatnonzero(allowed):
            if values[other] > values[row] * (1 + TIE):
                row = int(other)
        picked.row[i], picked.value[i], picked.mean[i], picked.std[i] = row, values[row], mean[i, row], std[i, row]
    return picked


def _upper_cost(acquisition: Acquisition, mean: Floats, std: Floats) -> Floats:
    """[q] the cost in dollars that a run does not exceed with the asked confidence."""
    if acquisition.confidence_z == -np.inf:
        return np.full(mean.shape, -np.inf)
    high = mean + np.where(std > 0, acquisition.confidence_z * std, 0.0)
    billing = acquisition.billing
    if billing is None:
        return high
    with np.errstate(over="ignore"):
        return billing.price * np.maximum(np.exp(high) + billing.boot, billing.minimum)


def _value_to_beat(acquisition: Acquisition, i: int, mean: Floats, std: Floats, is_open: NDArray[np.bool_]) -> float:
    """The objective to improve on; without a feasible observation, worst + 3 max sigma over the open rows (in dollars)."""
    if not np.isnan(acquisition.best[i]):
        return float(acquisition.best[i])
    sigma = std[:, 0]
    if acquisition.billing is not None:  # the deviation of price * T for lognormal T
        with np.errstate(over="ignore"):
            sigma = acquisition.billing.price * np.exp(mean[:, 0] + 0.5 * sigma**2) * np.sqrt(np.expm1(sigma**2))
    return float(acquisition.worst[i]) + 3 * min(float(sigma[is_open].max()), HUGE)


def _values(acquisition: Acquisition, best: float, mean: Floats, std: Floats) -> Floats:
    """[q] the acquisition value of every row."""
    ceiling = np.full(len(mean), np.inf) if acquisition.ceiling is None else acquisition.ceiling
    if acquisition.billing is None:
        values = normal_improvement(best, np.minimum(best, ceiling), mean[:, 0], std[:, 0])
    else:
        values = lognormal_improvement(best, ceiling, mean[:, 0], std[:, 0], acquisition.billing)
    constraints = acquisition.constraints
    for metric, sign, bound in zip(constraints.metric, constraints.sign, constraints.bound, strict=True):
        values = values * probability(sign * (bound - mean[:, metric]), std[:, metric])
    return values


def probability(margin: Floats, std: Floats) -> Floats:
    """P(N(0, std²) <= margin); a step at 0 where std is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        chance: Floats = np.where(std > 0, ndtr(margin / std), (margin >= 0).astype(float))
    return chance


def normal_improvement(best: float, k: Floats, mean: Floats, std: Floats) -> Floats:
    """E[(best - C)+ ; C <= k] for C ~ N(mean, std²), k <= best: (best - mean) Φ(z) + std φ(z), z = (k - mean) / std.

    Written as std (h(z) + (z' - z) Φ(z)) with h(z) = z Φ(z) + φ(z), z' = (best - mean) / std: no difference of
    large terms is left when k = best.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (k - mean) / std
        expected = std * (z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)) + (best - k) * ndtr(z)
    return np.maximum(np.where(std > 0, expected, np.where(mean <= k, best - mean, 0.0)), 0.0)


def lognormal_improvement(best: float, ceiling: Floats, mean: Floats, std: Floats, billing: Billing) -> Floats:
    """E[(best - cost(T))+ ; T <= ceiling] for ln T ~ N(mean, std²), cost(T) = price max(T + boot, minimum).

    With a = best/price - boot (the time at which the cost is best), f = minimum - boot (shorter runs cost the minimum) and
    k = min(a, ceiling), the improvement is price E[a - max(T, f); T <= k]. From E[T; T <= x] = exp(m + s²/2) Φ(z(x) - s),
    z(x) = (ln x - m)/s, and P(T <= x) = Φ(z(x)):

        price (a Φ(z(k)) - M Φ(z(k) - s) - [f Φ(z(g)) - M Φ(z(g) - s)]),   M = exp(m + s²/2), g = min(f, k),

    It is 0 if k <= 0 (never on time, or too expensive from the start) or a <= f (the minimum costs more than best).
    """
    price, boot, minimum = billing.price, billing.boot, billing.minimum
    a, f = best / price - boot, minimum - boot
    k = np.minimum(a, ceiling)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):

        def below(strike: Floats, x: Floats) -> Floats:
            z = (np.log(x) - mean) / std
            partial: Floats = strike * ndtr(z) - np.exp(mean + 0.5 * std**2 + log_ndtr(z - std))
            return partial

        expected = below(a, k) - np.where(f > 0, below(f, np.minimum(f, k)), 0.0)
        certain = np.where(np.exp(mean) <= k, a - np.maximum(np.exp(mean), f), 0.0)
        expected = price * np.maximum(np.where(std > 0, expected, certain), 0.0)
    return np.where((k > 0) & (a > np.maximum(f, 0.0)), expected, 0.0)
