"""Look-ahead: the worth of a row is its gain plus the discounted gains of the path that it opens, per dollar of that path.

The papers' text is recursive (`value(S, x, d)`); here all imagined situations of one depth are one batch. Of every imagined
situation only its owner (the first row), its weight, the row chosen there and the moments at that row are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lynceus.choose.imagine import Quadrature, imagine
from lynceus.choose.shortlist import TopRows
from lynceus.choose.simple import ByPrice, Uniform
from lynceus.history import Plan
from lynceus.parts import Gain, Picked, PicksRows, Shortlist, Surrogate, single
from lynceus.situation import (
    Belief,
    BoolArray,
    FloatArray,
    Form,
    IntArray,
    Situation,
    expected_charge,
    run_distribution,
    warm_saving,
)
from lynceus.units import format_money

_CHUNK = 2_000_000
"""Numbers per array when whole beliefs of a level are made and dropped piece by piece: a few tens of megabytes."""
_BELIEFS_PER_S = 500_000
"""Rows of imagined situations that a Gaussian process which knows 40 runs judges in a second, rounded down: 0.6 million of 384
configurations and 1.1 million of 5,000 were measured on two idle cores. A constant and no clock, because a decision must be the same
whenever and wherever it is made again."""
_FEWEST = 4
"""A look ahead from fewer rows than this chooses hardly anything."""


@dataclass(frozen=True)
class Rollout:
    """Choose the row whose imagined path brings most; depth 0 is ordinary Bayesian optimisation."""

    gain: Gain
    depth: int = 0
    """Runs imagined after the first one (LA in the papers)."""
    discount: float = 0.9
    """γ: what the next imagined run counts."""
    quadrature: Quadrature = field(default_factory=Quadrature)
    per: Literal["run", "dollar"] = "dollar"
    """Divide the path's gain by its dollars, or not."""
    charge: Literal["full", "capped"] = "full"
    """Imagined runs cost what they cost to the end (the papers), or only what the timeout lets them cost."""
    sure: float = 0.99
    """β: a row is a candidate when its full run fits into the money left with this probability; 0 asks nothing."""
    shortlist: Shortlist | None = None
    """Which rows are looked ahead from; nothing: all candidates."""
    allowance_s: float = math.inf
    """Look ahead from fewer rows, or not at all, where this would take longer (an estimate from the sizes, see `_BELIEFS_PER_S`)."""
    real_money: bool = False
    """Test affordability of imagined runs with the money really left, as the published program does."""

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError(f"look-ahead depth {self.depth} is negative")
        if not 0 <= self.discount <= 1 or not 0 <= self.sure < 1:
            raise ValueError(f"discount {self.discount} must lie in [0, 1] and sure {self.sure} in [0, 1)")
        if not self.allowance_s >= 0:
            raise ValueError(f"allowance_s {self.allowance_s} must not be negative")

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The candidate with the best gain per dollar of its path; nothing when no row is open and affordable."""
        if surrogate is None:
            raise ValueError("a rollout needs a surrogate; this policy has none")
        if not len(situation.rows):
            # Several workers start before anything is known: cheaply, one by one. When runs failed or taught nothing, luck is a way on.
            blind = Uniform() if situation.history else ByPrice()
            return blind(situation, surrogate, seed)
        belief = surrogate(situation, seed)
        gain = single(self.gain(belief, situation))
        usd = single(self._charge(belief, situation))
        candidates = situation.open & self._affordable(belief, situation)
        if not candidates.any():
            return None
        score = self._score(gain, usd)
        rows = np.flatnonzero(candidates)
        path: tuple[int, ...] = ()
        most = self._rows_in_time(situation)
        ahead = self.depth if most >= _FEWEST else 0
        if ahead > 0:
            if self.shortlist is not None:
                rows = self.shortlist(situation, score, candidates, seed)
            if len(rows) > most:
                rows = TopRows(int(most))(situation, score, candidates, seed)
            worth, spend, next_row = self._look_ahead(situation, surrogate, belief, rows, (gain[rows], usd[rows]), seed)
            path_score = self._score(worth, spend)
            chosen = int(np.argmax(path_score))
            row, best_score = int(rows[chosen]), float(path_score[chosen])
            path = (int(next_row[chosen]),) if next_row[chosen] >= 0 else ()
        else:
            row = int(rows[np.argmax(score[rows])])
            best_score = float(score[row])
        return Plan(
            row,
            why=_why(situation, float(gain[row]), float(usd[row]), int(candidates.sum()), ahead),
            score=best_score,
            gain=float(gain[row]),
            best_gain=float(gain[candidates].max()),
            best_rate=float(_rate(gain[candidates], usd[candidates]).max()),
            probability=float(belief.feasible(situation.problem)[0, row]),
            usd=float(usd[row]),
            expected=belief.expected(row),
            path=path,
        )

    def _look_ahead(
        self,
        situation: Situation,
        surrogate: Surrogate,
        belief: Belief,
        first: IntArray,
        start: tuple[FloatArray, FloatArray],
        seed: int,
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Gain and dollars of the path that each first row `[r]` opens, and its most likely second row."""
        real, worth, spend = situation, start[0].copy(), start[1].copy()
        second = np.full(len(first), -1, dtype=np.int64)
        owner, weight = np.arange(len(first)), np.ones(len(first))
        rows, moments = first, (belief.mean[0, first], belief.std[0, first])
        for level in range(self.depth):
            children, keep, share = self._children(situation, belief.form, rows, moments)
            if not len(children):
                break
            parent = np.repeat(np.arange(len(rows)), len(share) // len(rows))[keep]
            picked = self._pick(children, surrogate, real, seed)
            found = picked.row >= 0
            if not found.any():
                break
            if level == 0:
                # Each parent's heaviest outcome comes last in ascending order, so it is the one that stays.
                heaviest = np.argsort(share[keep], kind="stable")
                heaviest = heaviest[found[heaviest]]
                second[parent[heaviest]] = picked.row[heaviest]
            weight = weight[parent][found] * (self.discount * share[keep][found])
            owner = owner[parent][found]
            situation, rows = children.part(found), picked.row[found]
            moments = (picked.mean[found], picked.std[found])
            worth += np.bincount(owner, weight * picked.gain[found], minlength=len(first))
            spend += np.bincount(
                owner, weight * self._charge_of(situation, belief.form, rows, moments), minlength=len(first)
            )
        return worth, spend, second

    def _children(
        self, situation: Situation, form: Form, rows: IntArray, moments: tuple[FloatArray, FloatArray]
    ) -> tuple[Situation, BoolArray, FloatArray]:
        """Situations after each imagined outcome, which of the r·k outcomes they are, and the weight of every outcome."""
        imagined = imagine(situation, form, rows, moments, self.quadrature, capped=self.charge == "capped")
        children = situation.after(rows, imagined.told, imagined.charge, imagined.value)
        share = imagined.weight.ravel()
        keep = (share > 0) & (children.left > 0)
        return children.part(keep), keep, share

    def _pick(self, children: Situation, surrogate: Surrogate, real: Situation, seed: int) -> Picked:
        """argmax of the gain (not per dollar, as in the papers) over the candidates of each situation."""
        if self.real_money:
            children = replace(children, left=np.full(len(children), real.left[0]))
        if isinstance(surrogate, PicksRows):
            picked = surrogate.pick(children, self.gain, self.sure, seed)
            if picked is not None:
                return picked
        size = max(1, _CHUNK // (len(children.open) * children.targets))
        parts = [
            self._pick_by_belief(children.part(slice(i, i + size)), surrogate, seed)
            for i in range(0, len(children), size)
        ]
        return Picked(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "gain", "mean", "std"))
        )

    def _pick_by_belief(self, children: Situation, surrogate: Surrogate, seed: int) -> Picked:
        belief = surrogate(children, seed)
        gain = self.gain(belief, children)
        allowed = children.open_in_each()
        if self.sure > 0:
            allowed &= belief.affordable(children, self.sure)
        row = np.argmax(np.where(allowed, gain, -np.inf), axis=1)
        each = np.arange(len(children))
        return Picked(
            np.where(allowed[each, row], row, -1), gain[each, row], belief.mean[each, row], belief.std[each, row]
        )

    def _affordable(self, belief: Belief, situation: Situation) -> BoolArray:
        if self.sure == 0:
            return np.ones(len(situation.open), dtype=bool)
        return np.asarray(belief.affordable(situation, self.sure)[0])

    def _charge(self, belief: Belief, situation: Situation) -> FloatArray:
        return belief.charge(situation, situation.caps_s() if self.charge == "capped" else None)

    def _charge_of(
        self, situation: Situation, form: Form, rows: IntArray, moments: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """Expected dollars of one row per situation `[b]`."""
        caps = situation.cap_s_of(rows) if self.charge == "capped" else None
        run = run_distribution(form, moments[0][:, 0], moments[1][:, 0])
        usd = expected_charge(situation.problem, run, form, rows, caps)
        return np.maximum(usd - warm_saving(situation, rows), 0.0)

    def _score(self, gain: FloatArray, usd: FloatArray) -> FloatArray:
        return gain if self.per == "run" else _rate(gain, usd)

    def _rows_in_time(self, situation: Situation) -> float:
        """From how many rows the allowance lets us look ahead."""
        outcomes = self.quadrature.points**situation.targets
        imagined: int = sum(outcomes**level for level in range(1, self.depth + 1))
        return self.allowance_s * _BELIEFS_PER_S / max(1, imagined * len(situation.open))


def _why(situation: Situation, gain: float, usd: float, candidates: int, depth: int) -> str:
    ahead = f", {depth} ahead" if depth else ""
    unit = format_money(gain) if situation.problem.kind == "cost" else f"{gain:.3g}"
    return f"expected gain {unit} for {format_money(usd)}{ahead}, best of {candidates} affordable"


def _rate(gain: FloatArray, usd: FloatArray) -> FloatArray:
    """Gain per dollar. A model may believe that a run costs nothing; the smallest dollar keeps the order of gains then."""
    return gain / np.maximum(usd, 1e-12)
