"""Stopping rules of the papers, and ways to combine them. Each reads the situation and the next plan, and answers with a reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.history import Observation, Plan
from lynceus.parts import Stop
from lynceus.situation import Situation, feasible_runs
from lynceus.units import format_money


@dataclass(frozen=True, slots=True)
class Never:
    """Go on until money or configurations end (the papers' evaluations)."""

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """Nothing."""
        return None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stop as soon as one rule has a reason."""

    rules: tuple[Stop, ...]

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """The first reason."""
        return next((reason for rule in self.rules if (reason := rule(situation, plan)) is not None), None)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Stop when every rule has a reason."""

    rules: tuple[Stop, ...]

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """All reasons in one sentence."""
        reasons = [rule(situation, plan) for rule in self.rules]
        given = [reason for reason in reasons if reason is not None]
        return "; ".join(given) if given and len(given) == len(reasons) else None


@dataclass(frozen=True, slots=True)
class SmallGain:
    """The largest expected improvement is under a fraction of the incumbent (1 %; CherryPick: 10 % after at least 6 runs)."""

    fraction: float = 0.01
    after: int = 0
    """Runs that must have been made before."""

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason when the rule holds."""
        relative = relative_gain(situation, plan)
        if relative is None or situation.started < self.after or relative >= self.fraction:
            return None
        return f"the best expected gain is {relative:.2%} of the incumbent, under {self.fraction:.2%}"


@dataclass(frozen=True, slots=True)
class ProteusStop:
    """ProteusTM: expected improvement fell in each of the last 2 steps and is under ε of the incumbent now, and the last run
    improved the incumbent by less than ε."""

    fraction: float = 0.01

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason when all three hold."""
        relative = relative_gain(situation, plan)
        gains = [seen.order.plan.best_gain for seen in situation.history if not math.isnan(seen.order.plan.best_gain)]
        if relative is None or plan is None or len(gains) < 2 or relative >= self.fraction:
            return None
        falling = gains[-2] > gains[-1] > plan.best_gain
        before, now = _best_after(situation, len(situation.history) - 1), float(situation.best[0])
        improved = math.inf if math.isnan(before) else (before - now) / max(abs(now), np.finfo(float).tiny)
        if not falling or improved >= self.fraction:
            return None
        return (
            f"expected gains fell twice to {relative:.2%} of the incumbent and the last run improved it by {improved:.2%}, "
            f"both under {self.fraction:.2%}"
        )


@dataclass(frozen=True, slots=True)
class FutureUses:
    """The result will be used n more times: stop when the relative expected improvement is under 1/(n + 1)."""

    runs: int

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason when one more exploration run cannot pay for itself."""
        relative = relative_gain(situation, plan)
        if relative is None or relative >= 1.0 / (self.runs + 1):
            return None
        return f"the best expected gain, {relative:.2%} of the incumbent, does not pay for itself over {self.runs} future runs"


@dataclass(frozen=True, slots=True)
class TotalBudget:
    """Keep enough money to use the result: stop when (n + 1)·C(x*) + spent exceeds a total budget."""

    usd: float
    runs: int

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason when exploring further would eat the money of the production runs."""
        runs = feasible_runs(situation.problem, situation.history)
        if not runs:
            return None
        row, _ = min(runs, key=lambda run: run[1])
        cost = min(
            situation.problem.cost(row, seen.outcome.seconds)
            for seen in situation.history
            if seen.row == row and seen.outcome.end == "finished"
        )
        spent = sum(seen.outcome.charged_usd for seen in situation.history)
        if (self.runs + 1) * cost + spent <= self.usd:
            return None
        return f"{format_money(spent)} spent and {self.runs} runs at {format_money(cost)} reach the total of {format_money(self.usd)}"


@dataclass(frozen=True, slots=True)
class MaxTrials:
    """A largest number of runs."""

    count: int

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason once they are made."""
        return f"{self.count} runs were made" if situation.started >= self.count else None


@dataclass(frozen=True, slots=True)
class GittinsStop:
    """Stop when no candidate's Gittins index beats the incumbent, with λ = 1/(expected future runs of the job).

    g(x) solves E[(g − C)⁺] = λ·E[charge]. The left side grows with g, so g(x) ≥ C* is the same as EI(x) ≤ λ·E[charge(x)], and the
    largest gain per expected dollar decides without a root (Weitzman 1979; Xie et al. 2025): every future run saves the gain once.
    """

    future_runs: float = 100.0
    """How often the result will be used: 1/λ."""
    patience: int = 1
    """How many plans in a row must say so; a model may be wrong once."""

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A reason when a run is expected to cost more than it will ever save."""
        if np.isnan(situation.best[0]) or plan is None:
            return None
        earlier = [seen.order.plan for seen in situation.history[-self.patience + 1 :]] if self.patience > 1 else []
        rates = [each.best_rate for each in (*earlier, plan)]
        if len(rates) < self.patience or not all(self.future_runs * rate <= 1.0 for rate in rates):
            return None
        worth = f"{self.future_runs * plan.best_rate:.2g}"
        return f"a dollar more of search would save ${worth} over {self.future_runs:g} future runs"


def relative_gain(situation: Situation, plan: Plan | None) -> float | None:
    """Largest expected improvement over the incumbent's value; nothing without an incumbent or a model."""
    best = float(situation.best[0])
    if plan is None or math.isnan(best) or math.isnan(plan.best_gain):
        return None
    return plan.best_gain / max(abs(best), np.finfo(float).tiny)


def _best_after(situation: Situation, count: int) -> float:
    history: tuple[Observation, ...] = situation.history[:count]
    return min((value for _, value in feasible_runs(situation.problem, history)), default=math.nan)
