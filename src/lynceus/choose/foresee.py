"""Foresight: the worth of a row is the worth of what we would know after it, per dollar (Fabolas, Fabulinus, TrimTuner)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lynceus.choose.simple import Uniform
from lynceus.history import Plan
from lynceus.parts import Foresees, Foresight, RefinedWorth, Shortlist, Surrogate, Worth, single
from lynceus.situation import FloatArray, IntArray, Situation
from lynceus.units import format_money


@dataclass(frozen=True)
class Foresee:
    """Choose the row that brings most of every worth, per dollar of the run."""

    worths: tuple[Worth, ...]
    per: Literal["run", "dollar"] = "dollar"
    overhead: float = 0.0
    """What every run costs beside its machines (C_overhead in the papers), as a share of what an answer's run is believed to cost on
    average. Larger values turn the search from many nearly free runs to fewer, telling ones."""
    sure: float = 0.99
    """A row is a candidate when its run fits into the money left with this probability; 0 asks nothing."""
    shortlist: Shortlist | None = None
    """Rows whose worth is computed, by how good they look themselves (TrimTuner); nothing: all candidates."""
    refine: int = 24
    """How many of the best rows are compared again by the closer form of a worth, where it has one."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The best row; nothing when no row is open and affordable."""
        if not isinstance(surrogate, Foresees):
            raise ValueError("foresight needs a surrogate with joint draws, such as fabolas or foresighted-trees")
        if not situation.open.any():
            return None
        if not len(situation.rows):
            # Every run so far failed or taught nothing; a model has nothing to say, and luck is a way on.
            return Uniform()(situation, surrogate, seed)
        foresight = surrogate.foresee(situation, seed)
        belief = surrogate(situation, seed)
        candidates = situation.open.copy()
        if self.sure > 0:
            candidates &= belief.affordable(situation, self.sure)[0]
        if not candidates.any():
            return None
        usd = single(belief.charge(situation))
        chance = single(belief.feasible(situation.problem))
        rows = np.flatnonzero(candidates)
        if self.shortlist is not None:
            rows = self.shortlist(situation, _own_worth(situation, belief.mean[0], chance), candidates, seed)
        extra = self.overhead * float(usd[foresight.answers].mean())
        rate = self._ranked(foresight, situation, rows, usd[rows] + extra)
        chosen = int(np.argmax(rate))
        row = int(rows[chosen])
        return Plan(
            row,
            why=self._why(situation, float(usd[row]), len(rows)),
            score=float(rate[chosen]),
            probability=float(chance[row]),
            usd=float(usd[row]),
            expected=belief.expected(row),
        )

    def _ranked(self, foresight: Foresight, situation: Situation, rows: IntArray, usd: FloatArray) -> FloatArray:
        """Worth per dollar `[r]`; where the best few are compared again, all others are out of the race."""
        factors = [worth(foresight, situation, rows) for worth in self.worths]
        rate = self._rate(np.prod(factors, axis=0), usd)
        if self.refine < 2 or not any(isinstance(worth, RefinedWorth) for worth in self.worths):
            return rate
        top = np.argsort(-rate, kind="stable")[: self.refine]
        closer = [
            worth.refined(foresight, situation, rows[top]) if isinstance(worth, RefinedWorth) else factor[top]
            for worth, factor in zip(self.worths, factors, strict=True)
        ]
        refined = np.full(len(rows), -1.0)
        refined[top] = self._rate(np.prod(closer, axis=0), usd[top])
        # All of the best few may turn out to teach nothing; then the first ranking stands.
        return refined if refined.max() > 0 else rate

    def _rate(self, worth: FloatArray, usd: FloatArray) -> FloatArray:
        return worth if self.per == "run" else worth / np.maximum(usd, 1e-12)

    def _why(self, situation: Situation, usd: float, compared: int) -> str:
        share = situation.problem.share
        where = "" if (share == 1.0).all() else " about all data"
        return f"teaches most{where} for {format_money(usd)}, best of {compared} compared"


def _own_worth(situation: Situation, mean: FloatArray, chance: FloatArray) -> FloatArray:
    """How good each row looks itself `[q]`: its goal times its chance to keep the limits (the filter of TrimTuner)."""
    problem = situation.problem
    if problem.kind == "metric":
        goal = mean[:, 1 + problem.metrics.index(problem.goal.metric)]
        own = goal - goal.min() if problem.goal.maximise else goal.max() - goal
        return np.asarray((own + 1e-9) * chance)
    return np.asarray((mean[:, 0].max() - mean[:, 0] + 1e-9) * chance)
