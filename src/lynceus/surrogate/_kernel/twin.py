"""The kernel in slow and obvious NumPy: every tree is trained from scratch for every situation.

It defines what the compiled kernel computes, and serves where no C compiler was at hand. The rule of a tree:

- The randomness of a node is a hash (splitmix64) of the node's key: the tree's seed at the root, a hash of the parent's
  key and the side below. A node's draws hence do not depend on what happened elsewhere in the tree.
- A node is a leaf if its weight is under two smallest leaves, or its variance under a fraction of the bag's.
- Attributes are tried in a random order: `attributes` of them, and on until one gives a gain.
- A candidate split replaces the best one only if better by 1e-12 of the node's sum of squares, so that the order of
  summation cannot decide a tie: among equals the first attribute and its lowest threshold win.
- An empty bag predicts the plain mean of what was told.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from .gain import Gain, Picked
from .values import Codes, Floats, Growth, Imagined, Ints, Observed, check_together, nothing_imagined

TIE = 1e-12
"""Gains closer than this, relative to the node's sum of squares (in `pick`: to the gain), are equal."""
AGREE = 1e-13
"""Trees whose deviation is below this, relative to their value, agree exactly: the rest is rounding."""
HUGE = 1e100
"""A log-normal deviation is held to this: with a vast spread any feasible row is a gain, and stays comparable."""
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
    told: Floats
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
        weight, told = self.bag.weight[members], self.bag.told[members]
        split = None
        if not self._stops(weight, told):
            split = self._split(key, members)
        if split is None:
            centre = np.average(told, weights=weight)
            self.mean[candidates] = centre
            self.variance[candidates] = np.average((told - centre) ** 2, weights=weight)
            return
        attribute, cut = split
        left = self.bag.codes[attribute, members] < cut
        left_candidates = self.table.codes[attribute, candidates] < cut
        self.grow(hashed(key, 1), members[left], candidates[left_candidates])
        self.grow(hashed(key, 2), members[~left], candidates[~left_candidates])

    def _stops(self, weight: Floats, told: Floats) -> bool:
        if weight.sum() < 2 * self.growth.min_leaf:
            return True
        whole = _variance(self.bag.weight, self.bag.told)
        return self.growth.min_variance > 0 and _variance(weight, told) < self.growth.min_variance * whole

    def _split(self, key: int, members: Ints) -> tuple[int, int] | None:
        """Attribute and cut (left: code < cut) of the best split; None if none gains enough."""
        weight, told = self.bag.weight[members], self.bag.told[members]
        tie = TIE * float(np.sum(weight * told**2))
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
        total = np.bincount(inverse, weights=self.bag.weight[members] * self.bag.told[members])
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


def _variance(weight: Floats, told: Floats) -> float:
    return float(np.average(told**2, weights=weight) - np.average(told, weights=weight) ** 2)


def _ensemble(
    table: Codes, rows: Ints, told: Floats, bags: NDArray[np.int32], seeds: list[int], growth: Growth
) -> tuple[Floats, Floats]:
    """Mean and deviation [q] of one metric's trees. told [n] is centred, bags [trees,n]."""
    means, variances = np.zeros((2, len(seeds), table.q))
    for tree, seed in enumerate(seeds):
        kept = np.flatnonzero(bags[tree])
        if len(kept) == 0:
            means[tree] = told.mean()
            continue
        bag = _Bag(table.codes[:, rows[kept]], bags[tree, kept].astype(np.float64), told[kept])
        grower = _Tree(table, bag, growth, means[tree], variances[tree])
        grower.grow(seed, np.arange(len(kept)), np.arange(table.q))
    if growth.spread == "total":
        std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    else:
        std = means.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(table.q)
    return means.mean(axis=0), np.where(std <= AGREE * np.abs(means[0]), 0.0, std)


def believe(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, threads: int = 1
) -> tuple[Floats, Floats]:
    """See `lynceus.surrogate._kernel.believe`; `threads` is accepted and not used."""
    imagined = imagined or nothing_imagined(observed)
    check_together(codes, observed, imagined)
    m = len(observed.told)
    mean, std = np.empty((2, imagined.b, codes.q, m))
    for b in range(imagined.b):
        rows = np.concatenate([observed.rows, imagined.rows[b]])
        for j in range(m):
            centre = observed.told[j].mean()
            told = np.concatenate([observed.told[j], imagined.told[b, :, j]]) - centre
            bags = np.concatenate([observed.bags[j], imagined.bags[j]], axis=1)
            mean[b, :, j], std[b, :, j] = _ensemble(codes, rows, told, bags, observed.seeds[j].tolist(), growth)
            mean[b, :, j] += centre
    return mean, std


def pick(
    codes: Codes, observed: Observed, imagined: Imagined | None, growth: Growth, gain: Gain, threads: int = 1
) -> Picked:
    """See `lynceus.surrogate._kernel.pick`; `threads` is accepted and not used."""
    imagined = imagined or nothing_imagined(observed)
    mean, std = believe(codes, observed, imagined, growth)
    gain.check(codes, imagined.b, mean.shape[2])
    std = np.where(std == 0, gain.zero_sigma_factor * np.abs(mean), std)
    b, m = imagined.b, mean.shape[2]
    answer = Picked(np.full(b, -1), np.full(b, np.nan), np.full((b, m), np.nan), np.full((b, m), np.nan))
    for i in range(b):
        is_open = gain.open.copy()
        is_open[imagined.rows[i]] = False
        allowed = is_open & (_dear(gain, mean[i, :, 0], std[i, :, 0]) <= gain.left[i])
        if not allowed.any():
            continue
        scores = _scores(gain, _best(gain, i, mean[i], std[i], is_open), mean[i], std[i])
        row = int(np.flatnonzero(allowed)[0])
        for other in np.flatnonzero(allowed):
            if scores[other] > scores[row] * (1 + TIE):
                row = int(other)
        answer.row[i], answer.gain[i], answer.mean[i], answer.std[i] = row, scores[row], mean[i, row], std[i, row]
    return answer


def _dear(gain: Gain, mean: Floats, std: Floats) -> Floats:
    """[q] the objective that is almost surely not exceeded, in money."""
    if gain.sure_z == -np.inf:
        return np.full(mean.shape, -np.inf)
    high = mean + np.where(std > 0, gain.sure_z * std, 0.0)
    if gain.billing is None:
        return high
    with np.errstate(over="ignore"):
        return gain.billing.price * np.maximum(np.exp(high) + gain.billing.boot, gain.billing.minimum)


def _best(gain: Gain, i: int, mean: Floats, std: Floats, is_open: NDArray[np.bool_]) -> float:
    """The objective to improve on; with nothing feasible, worst + 3 max sigma over the open rows (in money)."""
    if not np.isnan(gain.best[i]):
        return float(gain.best[i])
    sigma = std[:, 0]
    if gain.billing is not None:  # the deviation of price * T for lognormal T
        with np.errstate(over="ignore"):
            sigma = gain.billing.price * np.exp(mean[:, 0] + 0.5 * sigma**2) * np.sqrt(np.expm1(sigma**2))
    largest = min(float(sigma[is_open].max()), HUGE)
    return float(gain.worst[i]) + 3 * (np.sqrt(largest) if gain.root_sigma else largest)


def _scores(gain: Gain, best: float, mean: Floats, std: Floats) -> Floats:
    """[q] the gain of every row."""
    ceiling = np.full(len(mean), np.inf) if gain.ceiling is None else gain.ceiling
    if gain.billing is None:
        scores = normal_gain(best, np.minimum(best, ceiling), mean[:, 0], std[:, 0])
    else:
        scores = lognormal_gain(best, ceiling, mean[:, 0], std[:, 0], gain)
    for metric, sign, bound in zip(gain.limits.metric, gain.limits.sign, gain.limits.bound, strict=True):
        scores = scores * probability(sign * (bound - mean[:, metric]), std[:, metric])
    return scores


def probability(margin: Floats, std: Floats) -> Floats:
    """P(N(0, std²) <= margin); a step at 0 where std is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        chance: Floats = np.where(std > 0, ndtr(margin / std), (margin >= 0).astype(float))
    return chance


def normal_gain(best: float, k: Floats, mean: Floats, std: Floats) -> Floats:
    """E[(best - C)+ ; C <= k] for C ~ N(mean, std²), k <= best: (best - mean) Φ(z) + std φ(z), z = (k - mean) / std.

    Written as std (h(z) + (z' - z) Φ(z)) with h(z) = z Φ(z) + φ(z), z' = (best - mean) / std: no difference of
    large terms is left when k = best.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (k - mean) / std
        expected = std * (z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)) + (best - k) * ndtr(z)
    return np.maximum(np.where(std > 0, expected, np.where(mean <= k, best - mean, 0.0)), 0.0)


def lognormal_gain(best: float, ceiling: Floats, mean: Floats, std: Floats, gain: Gain) -> Floats:
    """E[(best - cost(T))+ ; T <= ceiling] for ln T ~ N(mean, std²), cost(T) = price max(T + boot, minimum).

    With a = best/price - boot (the time at which the cost is best), f = minimum - boot (under it time is free) and
    k = min(a, ceiling), the gain is price E[a - max(T, f); T <= k]. From E[T; T <= x] = exp(m + s²/2) Φ(z(x) - s),
    z(x) = (ln x - m)/s, and P(T <= x) = Φ(z(x)):

        price (a Φ(z(k)) - M Φ(z(k) - s) - [f Φ(z(g)) - M Φ(z(g) - s)]),   M = exp(m + s²/2), g = min(f, k),

    the bracket only if f > 0. It is 0 if k <= 0 (never on time, or dearer at once) or a <= f (the minimum is dearer).
    """
    assert gain.billing is not None
    price, boot, minimum = gain.billing.price, gain.billing.boot, gain.billing.minimum
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
