"""Bagged random trees: the model of Lynceus and Nephele (μ and σ over an ensemble, taken as a normal prediction)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import ndtri

from lynceus.models import _kernel
from lynceus.models._kernel import Codes, Constraints, Growth, Imagined, Observed
from lynceus.models.features import Inputs, model_inputs, target_values
from lynceus.models.interfaces import AcquisitionFunction, ConstrainedAcquisition, Picked
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import derive, generator
from lynceus.models.state import Form, State

if TYPE_CHECKING:
    from lynceus.space.table import Space


@dataclass(frozen=True, slots=True)
class Trees:
    """An ensemble per target; the defaults are those of the papers."""

    trees: int = 10
    target: Form = "cost"
    """Model dollars (the papers), or the logarithm of time and derive cost through the known price."""
    attributes: int | None = None
    """Features tried at every node; None for ⌊log2 d⌋ + 1 of d."""
    bag: Literal["bootstrap", "poisson", "whole"] = "bootstrap"
    """n draws with replacement; Poisson(1) copies of each; or everything once (extra-trees). Imagined runs are in a bag
    Poisson(1) times (with `whole`: once), so that a tree without them need not be grown again."""
    splits: Literal["best", "random"] = "best"
    """Best threshold, or a random one per tried feature (extra-trees)."""
    spread: Literal["between", "total"] = "between"
    """σ over the trees' predictions, or by the law of total variance with the spread inside leaves."""
    min_gain: float = 0.0
    min_variance: float = 0.0
    min_leaf: int = 1
    no_more_than_samples: bool = True
    """With fewer observations than trees: as many trees as observations."""
    inputs: Inputs = "features"
    shared_randomness: bool = False
    """Use common random numbers: draw the same bags at every step; otherwise each step draws its own."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """μ and σ of every row in every state."""
        observed = self._observed(state, seed)
        imagined = self._imagined(state, observed, seed)
        codes = _codes(state.problem.space, self.inputs)
        mean, std = _kernel.predict(codes, observed, imagined, self._growth(codes.d), kernel_threads())
        return Prediction(self.target, mean, std)

    def pick(self, state: State, acquisition: AcquisitionFunction, confidence: float, seed: int) -> Picked | None:
        """The best row of every state, found inside the kernel; None if the kernel does not have this acquisition function."""
        if not isinstance(acquisition, ConstrainedAcquisition) or not self._in_kernel(state, acquisition):
            return None
        observed = self._observed(state, seed)
        imagined = self._imagined(state, observed, seed)
        codes = _codes(state.problem.space, self.inputs)
        values = self._kernel_acquisition(state, acquisition, confidence)
        found = _kernel.pick(codes, observed, imagined, self._growth(codes.d), values, kernel_threads())
        return Picked(found.row, found.value, found.mean, found.std)

    def _in_kernel(self, state: State, acquisition: ConstrainedAcquisition) -> bool:
        """Whether the kernel has this acquisition function: it minimises cost, every run boots, and each row runs once."""
        problem = state.problem
        plain = (
            problem.kind == "cost"
            and problem.repeats == 1
            and not problem.billing.warm
            and problem.answerable is None
            and problem.preemption is None
        )
        if self.target == "log time":
            # The kernel guesses an unknown best as the papers do (in dollars), and tests the budget without rounding.
            rounds = problem.billing.granularity_s > 0 and bool(np.isfinite(state.left).any())
            return plain and not np.isnan(state.best).any() and not rounds
        return plain and (acquisition.guess == "sigma" or not np.isnan(state.best).any())

    def _kernel_acquisition(
        self, state: State, acquisition: ConstrainedAcquisition, confidence: float
    ) -> _kernel.Acquisition:
        problem, q = state.problem, len(state.open)
        form: Literal["product", "exact", "lognormal"] = (
            "lognormal" if self.target == "log time" else "exact" if acquisition.exact else "product"
        )
        bounded = bool(np.isfinite(problem.ceiling_s).any())
        metric, sign, bound = [], [], []
        if form == "product" and bounded:
            metric, sign, bound = [0], [1], [problem.ceiling_usd]
        for constraint in problem.metric_constraints:
            metric.append(1 + problem.metrics.index(constraint.metric))
            sign.append(-1 if constraint.at_least else 1)
            bound.append(np.full(q, constraint.bound))
        ceiling, prices, fee = None, None, 0.0
        if form == "exact":
            ceiling = problem.ceiling_usd if bounded else None
        elif form == "lognormal":
            billing, fee = problem.billing, problem.billing.fee_usd
            ceiling = problem.ceiling_s if bounded else None
            prices = _kernel.Billing(problem.price, np.full(q, billing.boot_s), np.full(q, billing.minimum_s))
        return _kernel.Acquisition(
            form=form,
            open=state.open,
            best=state.best - fee,
            worst=np.nan_to_num(state.worst_in_each(self.target)),
            left=state.left - fee,
            confidence_z=_quantile(confidence),
            ceiling=ceiling,
            constraints=Constraints(metric, sign, np.array(bound).reshape(len(metric), q)),  # type: ignore[arg-type]
            billing=prices,
        )

    def _growth(self, features: int) -> Growth:
        attributes = self.attributes or int(math.log2(features)) + 1
        return Growth(
            min(attributes, features), self.min_gain, self.min_variance, self.min_leaf, self.splits, self.spread
        )

    def _observed(self, state: State, seed: int) -> Observed:
        """Real observations in the model's units, with their bags; unreported metrics are in no bag."""
        rows, n = state.rows, len(state.rows)
        if n == 0:
            raise ValueError("trees need at least one observation; put an initial design before the planner")
        target = np.vstack([target_values(state, self.target, state.seconds)[None], state.metrics.T])
        present = np.isfinite(target)
        number = min(self.trees, n) if self.no_more_than_samples else self.trees
        step = 0 if self.shared_randomness else state.started
        rng = generator(seed, "bags", step)
        bags = self._bags(rng, (len(target), number, n)) * present[:, None, :]
        seeds = rng.integers(0, 2**64, size=(len(target), number), dtype=np.uint64)
        return Observed(rows, np.where(present, target, 0.0), bags, seeds)

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

    def _imagined(self, state: State, observed: Observed, seed: int) -> Imagined | None:
        e = state.imagined_rows.shape[1]
        if e == 0 and len(state) == 1:
            return None
        m, trees, _ = observed.bags.shape
        # One stream per depth, so that a level of look-ahead has the same bags as the levels before it.
        columns = [generator(derive(seed, "imagined", state.started), j).poisson(1.0, (m, trees)) for j in range(e)]
        bags = np.stack(columns, axis=2) if columns else np.zeros((m, trees, 0))
        if self.bag == "whole":
            bags = np.ones_like(bags)
        return Imagined(state.imagined_rows, state.imagined_targets, bags.astype(np.int32))


def kernel_threads() -> int:
    """Threads that the kernel may use: `LYNCEUS_THREADS`, else every core. They change speed, never results."""
    return max(1, int(os.environ.get("LYNCEUS_THREADS", "0")) or os.cpu_count() or 1)


@lru_cache(maxsize=16)
def _codes(space: Space, inputs: Inputs) -> Codes:
    """The ranked table of a space; cached, because every decision needs it."""
    return _kernel.encode(model_inputs(space, inputs)[0])


@lru_cache(maxsize=16)
def _quantile(confidence: float) -> float:
    return float(ndtri(confidence)) if confidence > 0 else -math.inf
