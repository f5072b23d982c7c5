"""How much the runs of one configuration differ, and what that leaves to be believed of its time.

A run takes T = exp(f + e): f belongs to the configuration, e is noise. Most runs have e ~ N(0, σ²); a few are slow for a reason of their
own (a bad disk, a neighbour, a retry) and have e ~ N(a, b² + σ²). One lucky run is then not taken at its word: it is weighed against what
other configurations predict, and against further runs of its own; one slow run neither moves f much nor makes σ large.

σ is unknown: it has a prior, and repeated runs teach it. Everything is integrated on a grid, so no formula needs to be normal:

    p(f, σ, w | runs) ∝ p(σ) p(w) t₄(f; m, s) ∏ p(run | f, σ, w) ∏ over other repeated configurations ∫ ∏ p(run | f', σ, w) df'

with m, s what the model predicts from all other configurations, and w the share of slow runs: none, or a few percent. A run that was
stopped is worth P(T > its time).

>>> noise = RunNoise()
>>> once, twice = noise.belief(Runs((100.0,))), noise.belief(Runs((100.0, 100.0)))
>>> once.spread > twice.spread, once.doubt > 0.05 > twice.doubt
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from lynceus.space.column import FloatArray
from lynceus.trial.outcome import End, Observations

_SPREADS = (0.0005, 1.0)
"""Smallest and largest σ of the grid: 0.05 % is as good as none."""
_COUNT = 32
"""Values of σ."""
_PLACES = 160
"""Values of f for each σ, evenly spaced over all runs."""
_CENTRES, _NEAR = 5, 33
"""Runs about which values of f are close together, and how many: where σ is small, f is close to most of the runs."""
_REACH = 6.0
"""The grid of f ends so many σ beyond the runs."""
_TAILS = 4.0
"""Degrees of freedom of the prior of f: a model that is wrong by far is then outvoted by the runs."""
INTERVAL = 0.8
"""Probability of the interval that is reported."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one configuration, in seconds."""

    finished: tuple[float, ...] = ()
    stopped: tuple[float, ...] = ()
    """Times at which runs were stopped: lower bounds."""

    def __len__(self) -> int:
        return len(self.finished) + len(self.stopped)


@dataclass(frozen=True, eq=False, slots=True)
class Belief:
    """What is believed of a configuration after its runs: weights on a grid of f and σ."""

    place: FloatArray
    """f, the logarithm of a typical run's seconds, `[g, p]`."""
    sigma: FloatArray
    """σ, `[g, 1]`."""
    share: FloatArray
    """Share of slow runs, `[g, 1]`."""
    weight: FloatArray
    """Probabilities, `[g, p]`, sum 1."""
    noise: RunNoise

    @property
    def spread(self) -> float:
        """Expected σ."""
        return float((self.weight.sum(axis=1) * self.sigma[:, 0]).sum())

    @property
    def seconds(self) -> float:
        """Expected time of a run."""
        return float((self.weight * np.exp(self._log_mean())).sum())

    @property
    def typical_s(self) -> float:
        """Expected time of a run that is not slow for a reason of its own: such reasons meet all configurations alike."""
        return float((self.weight * np.exp(self.place + np.square(self.sigma) / 2)).sum())

    @property
    def low_s(self) -> float:
        """Lower end of the interval of the mean time."""
        return self._quantile((1 - INTERVAL) / 2)

    @property
    def high_s(self) -> float:
        """Upper end of the interval of the mean time."""
        return self._quantile((1 + INTERVAL) / 2)

    @property
    def doubt(self) -> float:
        """Standard deviation of the logarithm of the mean time, as far as another run can remove it.

        Whether a few percent of the runs are slow is left out: dozens of runs would tell, one does not.
        """
        log_mean, variance = self._log_mean(), 0.0
        for share in np.unique(self.share):
            weight = np.where(self.share == share, self.weight, 0.0)
            if (total := float(weight.sum())) > 0:
                centre = float((weight * log_mean).sum()) / total
                variance += float((weight * np.square(log_mean - centre)).sum())
        return math.sqrt(variance)

    def chance(self, limit_s: float) -> float:
        """P(the next run takes at most `limit_s`)."""
        if not limit_s > 0:
            return 0.0
        if math.isinf(limit_s):
            return 1.0
        noise, ratio = self.noise, math.log(limit_s) - self.place
        share, (slower, width) = self.share, noise.log_slower
        # Where runs do not differ, one that kept the limit exactly keeps it again.
        ratio = ratio + np.where(self.sigma == _SPREADS[0], _REACH * self.sigma, 0.0)
        plain, slow = ndtr(ratio / self.sigma), ndtr((ratio - slower) / np.hypot(self.sigma, width))
        return float((self.weight * ((1 - share) * plain + share * slow)).sum())

    def _log_mean(self) -> FloatArray:
        """ln E[T] given f and σ `[g, p]`."""
        noise = self.noise
        slower = math.exp(noise.log_slower[0] + noise.log_slower[1] ** 2 / 2) - 1
        return np.asarray(self.place + np.square(self.sigma) / 2 + np.log1p(self.share * slower))

    def _quantile(self, probability: float) -> float:
        values = self._log_mean().ravel()
        order = np.argsort(values)
        reached = np.searchsorted(np.cumsum(self.weight.ravel()[order]), probability)
        return math.exp(float(values[order[min(int(reached), len(order) - 1)]]))


@dataclass(frozen=True, slots=True)
class RunNoise:
    """What is believed of the noise before any configuration was repeated."""

    none: float = 0.2
    """Probability that runs do not differ at all."""
    log_spread: tuple[float, float] = (-2.6, 1.1)
    """Mean and std of ln σ where they do: from 1 % to 40 %, 7 % in the middle."""
    slow: tuple[float, float] = (0.3, 0.06)
    """Probability that some runs are slow for a reason of their own, and the share of these runs then."""
    log_slower: tuple[float, float] = (0.9, 0.5)
    """Mean and std of the logarithm of how much slower they are: about 2.5 times."""

    def __post_init__(self) -> None:
        if not (self.log_spread[1] > 0 and self.log_slower[1] >= 0):
            raise ValueError(
                f"log_spread {self.log_spread} needs a std above 0, and log_slower {self.log_slower} one of 0 or more"
            )
        if not all(0 <= each < 1 for each in (self.none, *self.slow)):
            raise ValueError(f"none {self.none} and slow {self.slow} must lie in [0, 1)")

    def belief(self, own: Runs, others: Iterable[Runs] = (), prior: tuple[float, float] | None = None) -> Belief:
        """What is believed of a configuration after its `own` runs and those of other repeated configurations.

        `prior` is mean and std of ln seconds that the model predicts from all other configurations; None where there is no model.
        """
        if not own.finished:
            raise ValueError("a configuration without a finished run has nothing to believe")
        sigma, share, log_prior = self._grid()
        place, log_weight = self._log_joint(own, sigma, share)
        log_weight = log_weight + log_prior
        if prior is not None:
            standard = (place - prior[0]) / prior[1]
            log_weight = log_weight - 0.5 * (_TAILS + 1) * np.log1p(np.square(standard) / _TAILS)
        log_weight = log_weight + self._learnt(others)
        weight = np.exp(log_weight - log_weight.max())
        return Belief(place, sigma, share, weight / weight.sum(), self)

    def spread(self, configurations: Iterable[Runs]) -> float:
        """The median of σ after the runs of some configurations; only those that were repeated tell of it."""
        sigma, _, log_weight = self._grid()
        log_weight = log_weight + self._learnt(configurations)
        weight = np.exp(log_weight - log_weight.max())[:, 0]
        order = np.argsort(sigma[:, 0], kind="stable")
        reached = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
        return float(sigma[order[reached], 0])

    def _learnt(self, configurations: Iterable[Runs]) -> FloatArray:
        """ln of the likelihood of repeated runs, whatever the typical times of their configurations `[g, 1]`."""
        total = np.zeros((2 * _COUNT, 1))
        for runs in configurations:
            if len(runs) > 1 and runs.finished:
                total = total + _marginal(self, runs)
        return total

    def _grid(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """σ, the share of slow runs and ln of their prior, `[g, 1]` each; the smallest σ stands for none."""
        sigma = np.geomspace(*_SPREADS, _COUNT)
        raw = np.exp(-0.5 * np.square((np.log(sigma) - self.log_spread[0]) / self.log_spread[1]))
        prior = (1 - self.none) * raw / raw.sum()
        prior[0] += self.none
        some, share = self.slow
        shares = np.repeat([0.0, share], _COUNT)
        weight = np.concatenate([(1 - some) * prior, some * prior])
        with np.errstate(divide="ignore"):
            return np.tile(sigma, 2)[:, np.newaxis], shares[:, np.newaxis], np.log(weight)[:, np.newaxis]

    def _log_joint(self, runs: Runs, sigma: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A grid of f `[g, p]`, and ln of the likelihood of the runs there times the width of a step."""
        known = np.log(np.maximum((*runs.finished, *runs.stopped), 1e-9))
        place, total = _places(known, sigma)
        slower, width = self.log_slower
        wide = np.hypot(sigma, width)
        with np.errstate(divide="ignore"):
            often, seldom = np.log1p(-share), np.log(share)
        for value in known[: len(runs.finished)]:
            plain = often - 0.5 * np.square((value - place) / sigma) - np.log(sigma)
            slow = seldom - 0.5 * np.square((value - place - slower) / wide) - np.log(wide)
            total = total + np.logaddexp(plain, slow)
        for value in known[len(runs.finished) :]:
            plain = often + log_ndtr((place - value) / sigma)
            total = total + np.logaddexp(plain, seldom + log_ndtr((place + slower - value) / wide))
        return place, total


@lru_cache(maxsize=256)
def _marginal(noise: RunNoise, runs: Runs) -> FloatArray:
    """ln of the likelihood of the runs of one configuration, whatever its typical time `[g, 1]`; several answers ask for it."""
    sigma, share, _ = noise._grid()
    joint = noise._log_joint(runs, sigma, share)[1]
    return np.asarray(np.logaddexp.reduce(joint, axis=1, keepdims=True))


def _places(known: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values of f for runs of these ln seconds, and ln of the width that each of them stands for, `[g, p]` both."""
    low, high = known.min() - _REACH * sigma, known.max() + _REACH * sigma
    even = low + (high - low) * np.linspace(0.0, 1.0, _PLACES)
    centres = np.quantile(known, np.linspace(0.0, 1.0, min(len(known), _CENTRES)), method="nearest")
    steps = np.linspace(-_REACH, _REACH, _NEAR)
    near = (centres[:, np.newaxis] + sigma[:, :, np.newaxis] * steps).reshape(len(sigma), -1)
    place = np.sort(np.concatenate([even, near], axis=1), axis=1)
    gaps = np.diff(place, axis=1, prepend=place[:, :1], append=place[:, -1:])
    with np.errstate(divide="ignore"):  # two values may be equal
        return place, np.log((gaps[:, 1:] + gaps[:, :-1]) / 2)


def runs_by_row(observations: Observations) -> dict[int, Runs]:
    """The runs of every configuration. Failed runs tell nothing of its time, nor do those stopped before its fastest run ended."""
    finished: dict[int, list[float]] = {}
    stopped: dict[int, list[float]] = {}
    for seen in observations:
        end, seconds = seen.outcome.end, seen.outcome.seconds
        if end is not End.FAILED:
            finished.setdefault(seen.row, []).extend([seconds] if end is End.FINISHED else [])
            stopped.setdefault(seen.row, []).extend([seconds] if end is End.TIMEOUT else [])
    found: dict[int, Runs] = {}
    for row, own in finished.items():
        fastest = min(own, default=0.0)
        found[row] = Runs(tuple(own), tuple(stop for stop in stopped[row] if stop >= fastest))
    return found
