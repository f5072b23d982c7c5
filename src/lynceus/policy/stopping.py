"""Stopping rules of the papers, and combinations of them. Each reads the state and the next plan, and returns a reason to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.models.state import State, feasible_runs
from lynceus.policy.interfaces import Stop
from lynceus.problem.units import format_money
from lynceus.trial.order import Plan, Purpose
from lynceus.trial.outcome import Observation


@dataclass(frozen=True, slots=True)
class Never:
    """Continue until the budget or the configurations are used up (the papers' evaluations)."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stop as soon as one rule has a reason."""

    rules: tuple[Stop, ...]

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """The first reason."""
        return next((reason for rule in self.rules if (reason := rule(state, plan)) is not None), None)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Stop when every rule has a reason."""

    rules: tuple[Stop, ...]

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """All reasons in one sentence."""
        reasons = [rule(state, plan) for rule in self.rules]
        given = [reason for reason in reasons if reason is not None]
        return "; ".join(given) if given and len(given) == len(reasons) else None


@dataclass(frozen=True, slots=True)
class SmallImprovement:
    """The largest expected improvement is under a fraction of the incumbent (1 %; CherryPick: 10 % after at least 6 runs)."""

    fraction: float = 0.01
    after: int = 0
    """Runs that must have been made before."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when the improvement is small."""
        relative = relative_improvement(state, plan)
        if relative is None or state.started < self.after or relative >= self.fraction:
            return None
        return f"the largest expected improvement is {relative:.2%} of the incumbent, under {self.fraction:.2%}"


@dataclass(frozen=True, slots=True)
class ProteusStop:
    """ProteusTM: expected improvement fell in each of the last 2 steps and is now under ε of the incumbent, and the last run
    improved the incumbent by less than ε."""

    fraction: float = 0.01

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when all three hold."""
        relative = relative_improvement(state, plan)
        improvements = [
            seen.order.plan.best_gain for seen in state.observations if not math.isnan(seen.order.plan.best_gain)
        ]
        if relative is None or plan is None or len(improvements) < 2 or relative >= self.fraction:
            return None
        falling = improvements[-2] > improvements[-1] > plan.best_gain
        before, now = _best_after(state, len(state.observations) - 1), float(state.best[0])
        improved = math.inf if math.isnan(before) else (before - now) / max(abs(now), np.finfo(float).tiny)
        if not falling or improved >= self.fraction:
            return None
        return (
            f"expected improvement fell twice to {relative:.2%} of the incumbent and the last run improved it by {improved:.2%}, "
            f"both under {self.fraction:.2%}"
        )


@dataclass(frozen=True, slots=True)
class FutureUses:
    """The result will be used n more times: stop when the relative expected improvement is under 1/(n + 1)."""

    runs: int

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when one more exploration run cannot pay for itself."""
        relative = relative_improvement(state, plan)
        if relative is None or relative >= 1.0 / (self.runs + 1):
            return None
        return f"the largest expected improvement, {relative:.2%} of the incumbent, does not pay for itself over {self.runs} future runs"


@dataclass(frozen=True, slots=True)
class TotalBudget:
    """Leave enough budget to use the result: stop when (n + 1)·C(x*) + spent exceeds a total budget."""

    usd: float
    runs: int

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when further exploration would use the budget of the production runs."""
        runs = feasible_runs(state.problem, state.observations)
        if not runs:
            return None
        row, _ = min(runs, key=lambda run: run[1])
        cost = min(
            state.problem.cost(row, seen.outcome.seconds)
            for seen in state.observations
            if seen.row == row and seen.outcome.end == "finished"
        )
        spent = sum(seen.outcome.charged_usd for seen in state.observations)
        if (self.runs + 1) * cost + spent <= self.usd:
            return None
        return f"{format_money(spent)} spent and {self.runs} runs at {format_money(cost)} reach the total of {format_money(self.usd)}"


@dataclass(frozen=True, slots=True)
class MaxTrials:
    """A largest number of runs."""

    count: int

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when they are started."""
        return f"{self.count} runs were started" if state.started >= self.count else None


@dataclass(frozen=True, slots=True)
class GittinsStop:
    """Stop when no candidate's Gittins index beats the incumbent, with λ = 1/(expected future runs of the job).

    g(x) solves E[(g − C)⁺] = λ·E[charge]. The left side grows with g, so g(x) ≥ C* is the same as EI(x) ≤ λ·E[charge(x)], and the
    largest improvement per expected dollar decides without a root (Weitzman 1979; Xie et al. 2025): every future run saves it once.
    """

    future_runs: float = 100.0
    """How often the result will be used: 1/λ."""
    patience: int = 1
    """How many plans in a row must agree, because a model may be wrong once."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when a run is expected to cost more than it will ever save."""
        if np.isnan(state.best[0]) or plan is None:
            return None
        searched = [seen.order.plan for seen in state.observations if seen.order.plan.purpose is not Purpose.CONFIRM]
        earlier = searched[-self.patience + 1 :] if self.patience > 1 else []
        rates = [each.best_rate for each in (*earlier, plan)]
        if len(rates) < self.patience or not all(self.future_runs * rate <= 1.0 for rate in rates):
            return None
        saved = f"{self.future_runs * plan.best_rate:.2g}"
        return f"one more dollar of search would save ${saved} over {self.future_runs:g} future runs"


def relative_improvement(state: State, plan: Plan | None) -> float | None:
    """Largest expected improvement as a fraction of the incumbent's value; None without an incumbent or a model."""
    best = float(state.best[0])
    if plan is None or math.isnan(best) or math.isnan(plan.best_gain):
        return None
    return plan.best_gain / max(abs(best), np.finfo(float).tiny)


def _best_after(state: State, count: int) -> float:
    observations: tuple[Observation, ...] = state.observations[:count]
    return min((value for _, value in feasible_runs(state.problem, observations)), default=math.nan)
