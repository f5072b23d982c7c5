"""Look-ahead: the score of a row is the acquisition value of the path of runs that starts there, per dollar of that path.

The papers define it recursively, value(S, x, d) = A(S, x) + γ Σ_k w_k · max_x' value(S_k, x', d − 1) over the outcomes k of running x;
here all imagined states of one depth are one batch. Of every imagined state only its first row, its weight, the row chosen there and
the moments at that row are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lynceus.models.interfaces import AcquisitionFunction, Picked, SupportsPick, Surrogate
from lynceus.models.prediction import Prediction, expected_charge, run_distribution
from lynceus.models.state import Form, State, warm_saving
from lynceus.policy.interfaces import Quadrature, Shortlist, single
from lynceus.policy.planners.outcomes import GaussHermite, imagine
from lynceus.policy.planners.shortlist import TopRows
from lynceus.policy.planners.simple import ByPrice, Uniform
from lynceus.problem.units import format_money
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.trial.order import Plan

_CHUNK = 2_000_000
"""Numbers per array when predictions for a whole level are made and dropped piece by piece: a few tens of megabytes."""
_PREDICTIONS_PER_S = 500_000
"""Rows of imagined states that a Gaussian process with 40 observations predicts in a second, rounded down: 0.6 million of 384
configurations and 1.1 million of 5,000 were measured on two idle cores. A constant and no clock, because a decision must be
reproducible at any time and on any machine."""
_FEWEST = 4
"""With fewer starting rows than this, look-ahead is skipped."""

_HARDLY = 1e-6
"""An expected improvement below this share of the best value is not worth a number."""


@dataclass(frozen=True)
class Lookahead:
    """Chooses the row whose imagined path has the best score; depth 0 is ordinary Bayesian optimization."""

    acquisition: AcquisitionFunction
    depth: int = 0
    """Runs imagined after the first one (LA in the papers)."""
    discount: float = 0.9
    """γ: the weight of the next imagined run."""
    quadrature: Quadrature = field(default_factory=GaussHermite)
    per: Literal["run", "dollar"] = "dollar"
    """Divide the acquisition value of the path by its dollars, or not."""
    charge: Literal["full", "capped"] = "full"
    """Imagined runs are charged to their end (the papers), or only until their timeout."""
    confidence: float = 0.99
    """β: a row is a candidate when its full run fits into the remaining budget with this probability; 0 for no test."""
    shortlist: Shortlist | None = None
    """Rows from which to look ahead; None for all candidates."""
    allowance_s: float = math.inf
    """Look ahead from fewer rows, or not at all, where it would take longer (estimated from the sizes, see `_PREDICTIONS_PER_S`)."""

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError(f"look-ahead depth {self.depth} is negative")
        if not 0 <= self.discount <= 1 or not 0 <= self.confidence < 1:
            raise ValueError(f"discount {self.discount} must lie in [0, 1] and confidence {self.confidence} in [0, 1)")
        if not self.allowance_s >= 0:
            raise ValueError(f"allowance_s {self.allowance_s} must not be negative")

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The candidate with the best score of its path; None when no row is open and affordable."""
        if surrogate is None:
            raise ValueError("a look-ahead needs a surrogate; this policy has none")
        if not len(state.rows):
            # The first workers start before any result: with the cheapest rows. After failed runs without results: at random.
            fallback = Uniform() if state.observations else ByPrice()
            return fallback(state, surrogate, seed)
        prediction = surrogate(state, seed)
        value = single(self.acquisition(prediction, state))
        usd = single(self._charge(prediction, state))
        candidates = state.open & self._affordable(prediction, state)
        if not candidates.any():
            return None
        score = self._score(value, usd)
        rows = np.flatnonzero(candidates)
        path: tuple[int, ...] = ()
        most = self._rows_in_time(state)
        ahead = self.depth if most >= _FEWEST else 0
        if ahead > 0:
            if self.shortlist is not None:
                rows = self.shortlist(state, score, candidates, seed)
            if len(rows) > most:
                rows = TopRows(int(most))(state, score, candidates, seed)
            path_value, path_usd, next_row = self._look_ahead(
                state, surrogate, prediction, rows, (value[rows], usd[rows]), seed
            )
            path_score = self._score(path_value, path_usd)
            chosen = int(np.argmax(path_score))
            row, best_score = int(rows[chosen]), float(path_score[chosen])
            path = (int(next_row[chosen]),) if next_row[chosen] >= 0 else ()
        else:
            row = int(rows[np.argmax(score[rows])])
            best_score = float(score[row])
        chance = prediction.feasible(state.problem)[0] * (1.0 if state.success is None else state.success)
        return Plan(
            row,
            why=_why(state, float(value[row]), float(usd[row]), int(candidates.sum()), ahead),
            score=best_score,
            gain=float(value[row]),
            best_gain=float(value[candidates].max()),
            best_rate=float(_rate(value[candidates], usd[candidates]).max()),
            chance_rate=_chance_rate(state, chance[candidates], usd[candidates]),
            probability=float(chance[row]),
            usd=float(usd[row]),
            expected=prediction.expected(row),
            path=path,
        )

    def _look_ahead(
        self,
        state: State,
        surrogate: Surrogate,
        prediction: Prediction,
        first: IntArray,
        start: tuple[FloatArray, FloatArray],
        seed: int,
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Acquisition value and dollars of the path from each first row `[r]`, and its most likely second row."""
        value, spend = start[0].copy(), start[1].copy()
        second = np.full(len(first), -1, dtype=np.int64)
        owner, weight = np.arange(len(first)), np.ones(len(first))
        rows, moments = first, (prediction.mean[0, first], prediction.std[0, first])
        for level in range(self.depth):
            children, keep, share = self._children(state, prediction.form, rows, moments, prediction.logs)
            if not len(children):
                break
            parent = np.repeat(np.arange(len(rows)), len(share) // len(rows))[keep]
            picked = self._pick(children, surrogate, seed)
            found = picked.row >= 0
            if not found.any():
                break
            if level == 0:
                # In ascending order of weight, the heaviest outcome of each parent is written last and stays.
                heaviest = np.argsort(share[keep], kind="stable")
                heaviest = heaviest[found[heaviest]]
                second[parent[heaviest]] = picked.row[heaviest]
            weight = weight[parent][found] * (self.discount * share[keep][found])
            owner = owner[parent][found]
            state, rows = children.part(found), picked.row[found]
            moments = (picked.mean[found], picked.std[found])
            value += np.bincount(owner, weight * picked.value[found], minlength=len(first))
            spend += np.bincount(
                owner, weight * self._charge_of(state, prediction.form, rows, moments), minlength=len(first)
            )
        return value, spend, second

    def _children(
        self,
        state: State,
        form: Form,
        rows: IntArray,
        moments: tuple[FloatArray, FloatArray],
        logs: tuple[bool, ...] = (),
    ) -> tuple[State, BoolArray, FloatArray]:
        """States after each imagined outcome, which of the r·k outcomes they are, and the weight of every outcome."""
        imagined = imagine(state, form, rows, moments, self.quadrature, capped=self.charge == "capped", logs=logs)
        children = state.after(rows, imagined.target, imagined.charge, imagined.value)
        share = imagined.weight.ravel()
        keep = (share > 0) & (children.left > 0)
        return children.part(keep), keep, share

    def _pick(self, children: State, surrogate: Surrogate, seed: int) -> Picked:
        """argmax of the acquisition value (not per dollar, as in the papers) over the candidates of each state."""
        if isinstance(surrogate, SupportsPick):
            picked = surrogate.pick(children, self.acquisition, self.confidence, seed)
            if picked is not None:
                return picked
        size = max(1, _CHUNK // (len(children.open) * children.targets))
        parts = [
            self._pick_by_prediction(children.part(slice(i, i + size)), surrogate, seed)
            for i in range(0, len(children), size)
        ]
        return Picked(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "value", "mean", "std"))
        )

    def _pick_by_prediction(self, children: State, surrogate: Surrogate, seed: int) -> Picked:
        prediction = surrogate(children, seed)
        value = self.acquisition(prediction, children)
        allowed = children.open_in_each()
        if self.confidence > 0:
            allowed &= prediction.affordable(children, self.confidence)
        row = np.argmax(np.where(allowed, value, -np.inf), axis=1)
        each = np.arange(len(children))
        return Picked(
            np.where(allowed[each, row], row, -1),
            value[each, row],
            prediction.mean[each, row],
            prediction.std[each, row],
        )

    def _affordable(self, prediction: Prediction, state: State) -> BoolArray:
        if self.confidence == 0:
            return np.ones(len(state.open), dtype=bool)
        return np.asarray(prediction.affordable(state, self.confidence)[0])

    def _charge(self, prediction: Prediction, state: State) -> FloatArray:
        return prediction.charge(state, state.timeouts_s() if self.charge == "capped" else None)

    def _charge_of(
        self, state: State, form: Form, rows: IntArray, moments: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """Expected dollars of one row per state `[b]`."""
        timeouts_s = state.timeout_s_of(rows) if self.charge == "capped" else None
        run = run_distribution(form, moments[0][:, 0], moments[1][:, 0])
        usd = expected_charge(state.problem, run, form, rows, timeouts_s)
        return np.maximum(usd - warm_saving(state, rows), 0.0)

    def _score(self, value: FloatArray, usd: FloatArray) -> FloatArray:
        return value if self.per == "run" else _rate(value, usd)

    def _rows_in_time(self, state: State) -> float:
        """From how many rows the time allows to look ahead."""
        outcomes = self.quadrature.points**state.targets
        imagined: int = sum(outcomes**level for level in range(1, self.depth + 1))
        return self.allowance_s * _PREDICTIONS_PER_S / max(1, imagined * len(state.open))


def _why(state: State, value: float, usd: float, candidates: int, depth: int) -> str:
    ahead = f", {depth} ahead" if depth else ""
    amount = format_money(value) if state.problem.kind == "cost" else f"{value:.3g}"
    best = abs(float(state.best[0]))
    scale = best if not math.isnan(best) else usd if state.problem.kind == "cost" else 0.0
    hoped = f"expected improvement {amount}" if value > _HARDLY * scale else "hardly any improvement expected"
    return f"{hoped} for {format_money(usd)}{ahead}, best of {candidates} affordable"


def _chance_rate(state: State, chance: FloatArray, usd: FloatArray) -> float:
    """The largest chance per dollar to find a first configuration that keeps every constraint; NaN once one is known."""
    return float(_rate(chance, usd).max()) if np.isnan(state.best[0]) and state.problem.constraints else math.nan


def _rate(value: FloatArray, usd: FloatArray) -> FloatArray:
    """Value per dollar. A model may predict a cost of 0; a smallest amount keeps the order of values."""
    return value / np.maximum(usd, 1e-12)
