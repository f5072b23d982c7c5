"""Stopping rules of the papers, and combinations of them. Each reads the state and the next plan, and returns a reason to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.errors import counted
from lynceus.models.state import State, feasible_runs
from lynceus.policy.interfaces import Stop
from lynceus.problem.dollar_use import DollarUse, dollar_use
from lynceus.problem.future_use import format_count, future_count, plural
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_money
from lynceus.trial.order import Plan, Purpose
from lynceus.trial.outcome import End, Observation


@dataclass(frozen=True, slots=True)
class Never:
    """Continue until the budget or the configurations are used up (the papers' evaluations)."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class FirstFeasible:
    """Stop at the first run that meets every constraint: enough for a search in order of a known objective."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """The reason, once there is such a run."""
        found = bool(feasible_runs(state.problem, state.observations))
        return "the first configuration in this order that meets every constraint was found" if found else None


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
    """Where the problem does not say how often the result will be used."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when one more exploration run cannot pay for itself."""
        relative, uses = relative_improvement(state, plan), future_count(state.problem.future, self.runs)
        if relative is None or relative >= 1.0 / (uses + 1):
            return None
        return (
            f"the largest expected improvement, {relative:.2%} of the incumbent, does not pay for itself over "
            f"{future_text(state.problem, uses)}"
        )


@dataclass(frozen=True, slots=True)
class TotalBudget:
    """Leave enough budget to use the result: stop when (n + 1)·C(x*) + spent exceeds a total budget."""

    usd: float
    runs: int
    """Where the problem does not say how often the result will be used."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when further exploration would use the budget of the production runs."""
        uses = future_count(state.problem.future, self.runs)
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
        if (uses + 1) * cost + spent <= self.usd:
            return None
        later = f"{format_count(uses)} {'run' if uses == 1 else 'runs'} at {format_money(cost)}"
        return f"{format_money(spent)} spent and {later} reach the total of {format_money(self.usd)}"


@dataclass(frozen=True, slots=True)
class MaxTrials:
    """A largest number of runs."""

    count: int

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when they are started."""
        return _runs(self.count, "started") if state.started >= self.count else None


@dataclass(frozen=True, slots=True)
class GittinsStop:
    """Stop when no candidate's Gittins index beats the incumbent, with λ = 1/(expected future runs of the job).

    g(x) solves E[(g − C)⁺] = λ·E[charge]. The left side grows with g, so g(x) ≥ C* is the same as EI(x) ≤ λ·E[charge(x)], and the
    largest improvement per expected dollar decides without a root (Weitzman 1979; Xie et al. 2025): every future run saves it once.
    Both sides are dollars in every unit of the objective, see `usd_of_improvement`.

    While no run has met the constraints there is no C*. Then a box holds a configuration that meets them, or nothing. The user pays for
    every future run of the job, so a first such configuration is worth as much, and opening a box pays off while P(feasible)·worth >
    E[charge]. Models are sure of what lies between and beyond runs, and jobs have cliffs: the same must hold if the model is wrong about
    all that did not run, and a run meets the constraints with the probability that n runs which did not leave (`_blind_rate`).
    """

    future_runs: float = 100.0
    """How often the result will be used (1/λ), where the problem does not say it."""
    patience: int = 1
    """How many plans in a row must agree, because a model may be wrong once."""
    gives_up: bool = False
    """Also stop while no run has met the constraints, when none is likely to at a price worth paying."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when a run is expected to cost more than it will ever save."""
        if plan is None:
            return None
        if np.isnan(state.best[0]):
            return self._hopeless(state, plan) if self.gives_up else None
        plans, uses = self._last_plans(state, plan), future_count(state.problem.future, self.future_runs)
        worth_usd = uses * usd_of_improvement(state)
        if not self._agree([worth_usd * each.best_rate for each in plans]):
            return None
        return f"one more dollar of search would {_gain_text(state, worth_usd, plan.best_rate)} over {future_text(state.problem, uses)}"

    def _hopeless(self, state: State, plan: Plan) -> str | None:
        """A reason when no configuration is likely enough to meet the constraints."""
        problem, uses = state.problem, future_count(state.problem.future, self.future_runs)
        worth_usd, by_chance = uses * _usd_of_a_use(state), _blind_rate(state)
        earned = [worth_usd * each.chance_rate for each in self._last_plans(state, plan)]
        if not self._agree(earned) or not worth_usd * by_chance <= 1.0:
            return None
        return (
            "no configuration is likely enough to meet the constraints: one more dollar of search would be worth "
            f"{format_money(max(worth_usd * by_chance, earned[-1]))} over {future_text(problem, uses)}"
        )

    def _last_plans(self, state: State, plan: Plan) -> list[Plan]:
        """This plan and the last ones before it, as many as must agree."""
        plans = (seen.order.plan for seen in state.observations)
        searched = [each for each in plans if each.purpose not in (Purpose.CONFIRM, Purpose.BASELINE, Purpose.SHARED)]
        return [*(searched[-self.patience + 1 :] if self.patience > 1 else []), plan]

    def _agree(self, earned: list[float]) -> bool:
        """Whether so many plans in a row expected to earn less than the dollar that they cost."""
        return len(earned) >= self.patience and all(each <= 1.0 for each in earned)


def usd_of_improvement(state: State) -> float:
    """Dollars that one use saves for each unit by which the objective improves.

    1 where the objective is the cost of a run. Where it is dollars per unit and the user says how many units will be used: what the unit
    tells. Otherwise the rule is relative: to improve the objective by 1 % is worth 1 % of what a run of the incumbent costs, which is the
    same for a cost. So another unit of the objective changes nothing.
    """
    problem = state.problem
    use = declared_use(problem)
    if use is not None:
        return use.usd
    scale = abs(float(state.best[0])) or _spread(state)
    return _incumbent_usd(state) / scale if scale > 0 else 0.0


def declared_use(problem: Problem) -> DollarUse | None:
    """What a use is, where its dollars follow from the objective and the user counts such uses; cost counts runs by itself."""
    return dollar_use(problem) if problem.kind == "cost" or problem.future is not None else None


def future_text(problem: Problem, uses: float) -> str:
    """A number of future uses in words: `100 future runs`."""
    use = declared_use(problem)
    return f"{format_count(uses)} future {plural('run' if use is None else use.unit)}"


def assumed_uses(stop: Stop) -> float | None:
    """How often a stopping rule assumes that the result will be used; None when it does not count uses."""
    if isinstance(stop, GittinsStop):
        return stop.future_runs
    if isinstance(stop, FutureUses | TotalBudget):
        return float(stop.runs)
    if isinstance(stop, AnyOf | AllOf):
        return next((uses for rule in stop.rules if (uses := assumed_uses(rule)) is not None), None)
    return None


def _usd_of_a_use(state: State) -> float:
    """What the user pays for one use of the result: the median cost of finished runs; before the first, what the constraints allow."""
    problem = state.problem
    use = declared_use(problem)
    if use is not None and problem.kind != "cost" and not math.isnan(state.worst):
        return use.usd * state.worst
    finished = [seen for seen in state.observations if seen.outcome.end is End.FINISHED]
    costs = [problem.cost(seen.row, seen.outcome.seconds) for seen in finished]
    allowed = costs or problem.ceiling_usd[np.isfinite(problem.ceiling_usd)]
    return float(np.median(allowed)) if len(allowed) else math.nan


def _blind_rate(state: State) -> float:
    """The chance per dollar that a run meets the constraints, if the model may be wrong and none of n runs has met them.

    Jeffreys' prior for the share of configurations that meet them, Beta(½, ½), has the posterior mean ½/(n + 1).
    """
    charges = [seen.outcome.charged_usd for seen in state.observations if seen.target is not None]
    paid = [usd for usd in charges if usd > 0]
    return 0.5 / (len(charges) + 1) / float(np.median(paid)) if paid else math.nan


def _incumbent_usd(state: State) -> float:
    """What a run of the best configuration costs; of all finished runs in the median where the best is none of them."""
    runs = [
        (runs[0][1], state.problem.cost(seen.row, seen.outcome.seconds))
        for seen in state.observations
        if (runs := feasible_runs(state.problem, (seen,)))
    ]
    return min(runs)[1] if runs else _usd_of_a_use(state)


def _spread(state: State) -> float:
    """How much the objective differs between runs: its scale where the best value is 0."""
    values = [value for _, value in feasible_runs(state.problem, state.observations)]
    return max(values) - min(values) if values else 0.0


def _gain_text(state: State, worth_usd: float, rate: float) -> str:
    """An improvement for each dollar of search, in dollars; also in percent where the rule is relative."""
    problem = state.problem
    if declared_use(problem) is not None:
        return f"save {format_money(worth_usd * rate)}"
    share = rate / (abs(float(state.best[0])) or _spread(state) or math.inf)
    return f"improve {problem.objective.metric} by {share:.2%}, worth {format_money(worth_usd * rate)} of runs"


def relative_improvement(state: State, plan: Plan | None) -> float | None:
    """Largest expected improvement as a fraction of the incumbent's value; None without an incumbent or a model."""
    best = float(state.best[0])
    if plan is None or math.isnan(best) or math.isnan(plan.best_gain):
        return None
    return plan.best_gain / max(abs(best), np.finfo(float).tiny)


def _best_after(state: State, count: int) -> float:
    observations: tuple[Observation, ...] = state.observations[:count]
    return min((value for _, value in feasible_runs(state.problem, observations)), default=math.nan)


@dataclass(frozen=True, slots=True)
class Iterations:
    """A number of runs for a study that has no budget of its own (Fabulinus: 100 iterations)."""

    limit: int = 100

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit is {self.limit}; give the number of runs, 1 or more")

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """A reason when they are started and neither money nor a number of runs is limited."""
        budget = state.problem.budget
        if math.isfinite(budget.usd) or budget.trials is not None or state.started < self.limit:
            return None
        return f"{_runs(self.limit, 'made')}; a budget allows more"


def _runs(count: int, what: str) -> str:
    return f"{counted(count, 'run')} {'was' if count == 1 else 'were'} {what}"
