"""Bagged random trees: the model of Lynceus and Nephele (spec: μ and σ over an ensemble, predictions taken as normal)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.parts import ConstrainedGain, Gain, Picked
from lynceus.randomness import derive, generator
from lynceus.situation import Belief, Form, Situation
from lynceus.surrogate import _kernel
from lynceus.surrogate._kernel import Billing, Codes, Growth, Imagined, Limits, Observed
from lynceus.surrogate.inputs import Inputs, model_inputs, told_run

if TYPE_CHECKING:
    from lynceus.space import Space


@dataclass(frozen=True, slots=True)
class Trees:
    """An ensemble per target. The defaults are the papers'; `reference` in `lynceus.policy` repeats the published program."""

    trees: int = 10
    target: Form = "cost"
    """Model dollars as they are (the papers), or the logarithm of time and derive cost through the known price."""
    attributes: int | None = None
    """Features tried at every node; nothing: ⌊log2 d⌋ + 1 of d."""
    bag: Literal["bootstrap", "poisson", "whole"] = "bootstrap"
    """n draws with replacement; Poisson(1) copies of each; or everything once (extra-trees). Imagined runs are always in a bag
    Poisson(1) times (in `whole`: once), so that a tree without them need not be grown again."""
    splits: Literal["best", "random"] = "best"
    """Best threshold, or a random one per tried feature (extra-trees)."""
    spread: Literal["between", "total"] = "between"
    """σ over the trees' predictions, or by the law of total variance with the spread inside leaves."""
    min_gain: float = 0.0
    min_variance: float = 0.0
    min_leaf: int = 1
    no_more_than_samples: bool = True
    """With fewer observations than trees: as many trees as observations."""
    zero_spread: float = 0.0
    """Where all trees agree exactly, σ becomes this multiple of μ ("we know nothing"); the published program uses 10."""
    inputs: Inputs = "features"
    same_luck: bool = False
    """Draw the same bags at every step, as the published program does; otherwise each step has its own luck."""

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """μ and σ of every row in every situation."""
        observed = self._observed(situation, seed)
        imagined = self._imagined(situation, observed, seed)
        codes = _codes(situation.problem.space, self.inputs)
        mean, std = _kernel.believe(codes, observed, imagined, self._growth(codes.d), kernel_threads())
        if self.zero_spread:
            std = np.where(std == 0.0, self.zero_spread * np.abs(mean), std)
        return Belief(self.target, mean, std)

    def pick(self, situation: Situation, gain: Gain, sure: float, seed: int) -> Picked | None:
        """The best row of every situation, found inside the kernel."""
        problem = situation.problem
        if not isinstance(gain, ConstrainedGain) or not self._fuses(situation, gain):
            return None
        observed = self._observed(situation, seed)
        imagined = self._imagined(situation, observed, seed)
        codes = _codes(problem.space, self.inputs)
        found = _kernel.pick(
            codes, observed, imagined, self._growth(codes.d), self._kernel_gain(situation, gain, sure), kernel_threads()
        )
        return Picked(found.row, found.gain, found.mean, found.std)

    def _fuses(self, situation: Situation, gain: ConstrainedGain) -> bool:
        """Whether the kernel computes this gain: the goal is cost, every run boots, each row runs once, a best is known."""
        problem = situation.problem
        plain = (
            problem.kind == "cost"
            and problem.repeats == 1
            and not problem.tariff.warm
            and problem.answerable is None
            and problem.restarts is None
        )
        if self.target == "log time":
            # The kernel's stand-in for an unknown best is the papers' (in dollars); money is tested without rounding.
            rounds = problem.tariff.granularity_s > 0 and bool(np.isfinite(situation.left).any())
            return plain and not np.isnan(situation.best).any() and not rounds
        return plain and (gain.guess in ("sigma", "root sigma") or not np.isnan(situation.best).any())

    def _kernel_gain(self, situation: Situation, gain: ConstrainedGain, sure: float) -> _kernel.Gain:
        problem, q = situation.problem, len(situation.open)
        form: Literal["product", "exact", "lognormal"] = (
            "lognormal" if self.target == "log time" else "exact" if gain.exact else "product"
        )
        bounded = bool(np.isfinite(problem.ceiling_s).any())
        metric, sign, bound = [], [], []
        if form == "product" and bounded:
            metric, sign, bound = [0], [1], [problem.ceiling_usd]
        for limit in problem.metric_limits:
            metric.append(1 + problem.metrics.index(limit.metric))
            sign.append(-1 if limit.at_least else 1)
            bound.append(np.full(q, limit.bound))
        ceiling, billing, fee = None, None, 0.0
        if form == "exact":
            ceiling = problem.ceiling_usd if bounded else None
        elif form == "lognormal":
            tariff, fee = problem.tariff, problem.tariff.fee_usd
            ceiling = problem.ceiling_s if bounded else None
            billing = Billing(problem.price, np.full(q, tariff.boot_s), np.full(q, tariff.minimum_s))
        return _kernel.Gain(
            form=form,
            open=situation.open,
            best=situation.best - fee,
            worst=np.nan_to_num(situation.worst_in_each(self.target)),
            left=situation.left - fee,
            sure_z=_quantile(sure),
            ceiling=ceiling,
            limits=Limits(metric, sign, np.array(bound).reshape(len(metric), q)),  # type: ignore[arg-type]
            billing=billing,
            zero_sigma_factor=self.zero_spread,
            root_sigma=gain.guess == "root sigma",
        )

    def _growth(self, features: int) -> Growth:
        attributes = self.attributes or int(math.log2(features)) + 1
        return Growth(
            min(attributes, features), self.min_gain, self.min_variance, self.min_leaf, self.splits, self.spread
        )

    def _observed(self, situation: Situation, seed: int) -> Observed:
        """Real observations in the model's units, with their bags; a metric that was not reported is in no bag."""
        rows, n = situation.rows, len(situation.rows)
        if n == 0:
            raise ValueError("trees need at least one observation; put an initial design before the planner")
        told = np.vstack([told_run(situation, self.target, situation.seconds)[None], situation.metrics.T])
        present = np.isfinite(told)
        number = min(self.trees, n) if self.no_more_than_samples else self.trees
        step = 0 if self.same_luck else situation.started
        rng = generator(seed, "bags", step)
        bags = self._bags(rng, (len(told), number, n)) * present[:, None, :]
        seeds = rng.integers(0, 2**64, size=(len(told), number), dtype=np.uint64)
        return Observed(rows, np.where(present, told, 0.0), bags, seeds)

    def _bags(
        self, rng: np.random.Generator, shape: tuple[int, int, int]
    ) -> np.ndarray[tuple[int, int, int], np.dtype[np.int32]]:
        m, trees, n = shape
        if self.bag == "whole":
            return np.ones(shape, dtype=np.int32)
        if self.bag == "poisson":
            return rng.poisson(1.0, shape).astype(np.int32)
        # A multinomial with equal chances is a bootstrap; the conditional-binomial form of NumPy is fast enough.
        return rng.multinomial(n, np.full(n, 1.0 / n), size=(m, trees)).astype(np.int32)

    def _imagined(self, situation: Situation, observed: Observed, seed: int) -> Imagined | None:
        e = situation.imagined_rows.shape[1]
        if e == 0 and len(situation) == 1:
            return None
        m, trees, _ = observed.bags.shape
        # One stream per depth, so that a level of look-ahead sees the same bags as the levels before it.
        columns = [generator(derive(seed, "imagined", situation.started), j).poisson(1.0, (m, trees)) for j in range(e)]
        bags = np.stack(columns, axis=2) if columns else np.zeros((m, trees, 0))
        if self.bag == "whole":
            bags = np.ones_like(bags)
        return Imagined(situation.imagined_rows, situation.imagined_told, bags.astype(np.int32))


def kernel_threads() -> int:
    """Threads that the kernel may use: `LYNCEUS_THREADS`, else every core. They change speed, never results."""
    return max(1, int(os.environ.get("LYNCEUS_THREADS", "0")) or os.cpu_count() or 1)


@lru_cache(maxsize=16)
def _codes(space: Space, inputs: Inputs) -> Codes:
    """The ranked table of a space; a pure function of it, kept because every decision needs it."""
    return _kernel.encode(model_inputs(space, inputs)[0])


@lru_cache(maxsize=16)
def _quantile(sure: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(sure)) if sure > 0 else -math.inf
