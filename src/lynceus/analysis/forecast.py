"""The plan of a search before anything is spent: the size of the space, what runs can cost, how long the search can take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lynceus.analysis.savings import Uses, counted_uses
from lynceus.policy.future_use import future_use
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import assumed_uses
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.policy.timeouts.rules import NoTimeout
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration

TYPICAL = 0.5
"""A typical run is assumed to need this share of the longest time, as long as nothing has been measured."""


@dataclass(frozen=True)
class PlannedBaseline:
    """The configuration used until now, before anything runs."""

    params: Mapping[str, object]
    runtime_s: float | None
    """The time of a run as the user gave it."""
    cost_usd: float | None
    """Dollars of such a run."""
    measure: bool
    """Whether the first trial measures it; otherwise, without a time, a model will predict it."""


@dataclass(frozen=True)
class Forecast:
    """`lynceus plan`: what a search may cost. Dollars and seconds; infinite (null in JSON) where nothing bounds them."""

    configurations: int
    price_low: float
    """Dollars per hour of the cheapest configuration."""
    price_median: float
    price_high: float
    run_limit_s: float
    """The longest that a run may take."""
    run_low_usd: float
    """A run of `run_limit_s` on the cheapest configuration."""
    run_high_usd: float
    """The same on the most expensive one."""
    trials_at_least: int | None
    """Trials that the budget pays for even if all run on the most expensive machines and as long as allowed; None: unknown."""
    trials_at_most: int
    expected_spend_usd: float
    expected_time_s: float
    expected_trials: int
    worst_spend_usd: float
    worst_time_s: float
    basis: str
    """How expectation and worst case were computed."""
    future: Uses
    """How often the result will be used."""
    counts_uses: bool
    """Whether the policy stops when a further run does not pay for itself over the future uses."""
    break_even_usd: float
    """What each future use must save so that the expected spending pays for itself; NaN when that is unknown."""
    baseline: PlannedBaseline | None
    warning: str = ""
    """A sentence about what makes this search slower or more expensive than necessary; empty if nothing does."""


def forecast(problem: Problem, policy: Policy, *, parallel: int = 1) -> Forecast:
    """What the search may cost in money and time, computed from prices, constraints and the budget."""
    price, budget = problem.price, problem.budget
    limit_s = run_limit_s(problem, policy)
    low, middle, high = (float(np.quantile(price, share)) for share in (0.0, 0.5, 1.0))
    usd = problem.billing.charge
    most = min(len(problem.space) * problem.repeats, budget.trials or math.inf)
    high_usd = usd(limit_s, high) if math.isfinite(limit_s) else math.inf
    most_usd = problem.billing.largest_charge(limit_s, high) if math.isfinite(limit_s) else math.inf
    typical_s = limit_s * TYPICAL
    typical = usd(typical_s, middle) if math.isfinite(limit_s) else math.nan
    certain = (
        most
        if math.isinf(budget.usd)
        else min(most, 0 if math.isinf(most_usd) else math.floor(budget.usd / most_usd + 1e-9))
    )
    affordable = most if math.isinf(budget.usd) or math.isnan(typical) else min(most, max(1.0, budget.usd // typical))
    wall = budget.wall_clock_s or math.inf
    expected_usd = min(budget.usd, affordable * typical) if math.isfinite(limit_s) else budget.usd
    uses = counted_uses(problem, future_use(problem, policy))
    expected_time = math.ceil(affordable / parallel) * typical_s if math.isfinite(limit_s) else math.inf
    return Forecast(
        configurations=len(problem.space),
        price_low=low * 3600,
        price_median=middle * 3600,
        price_high=high * 3600,
        run_limit_s=limit_s,
        run_low_usd=usd(limit_s, low) if math.isfinite(limit_s) else math.inf,
        run_high_usd=high_usd,
        trials_at_least=None if math.isinf(high_usd) else int(certain),
        trials_at_most=int(most),
        expected_spend_usd=expected_usd,
        expected_time_s=min(wall + typical_s, expected_time),
        expected_trials=int(affordable),
        worst_spend_usd=min(budget.usd, most * most_usd),
        worst_time_s=_longest(problem, limit_s, low, most, parallel),
        basis=_basis(limit_s, problem),
        future=uses,
        counts_uses=assumed_uses(policy.stop) is not None,
        break_even_usd=expected_usd / uses.count if math.isfinite(expected_usd) else math.nan,
        baseline=_baseline(problem),
        warning=_warning(problem, policy, parallel),
    )


def _baseline(problem: Problem) -> PlannedBaseline | None:
    if (baseline := problem.baseline) is None:
        return None
    seconds = baseline.runtime_s
    usd = None if seconds is None else problem.cost(baseline.row, seconds)
    return PlannedBaseline(problem.space.point(baseline.row), seconds, usd, baseline.measure)


def _warning(problem: Problem, policy: Policy, parallel: int) -> str:
    """A run that only the budget can stop reserves all of the budget."""
    if math.isinf(problem.budget.usd) or not math.isinf(_useful_s(problem, policy)):
        return ""
    slower = ", so that trials run one after another" if parallel > 1 else ""
    return (
        "only the budget bounds a run, so each trial reserves all the money that is left"
        f"{slower}; add a constraint on runtime, or trial.max_duration"
    )


def run_limit_s(problem: Problem, policy: Policy) -> float:
    """The longest time of a run: a fixed timeout, the deadline when runs are stopped there, or what the budget affords."""
    return min(_useful_s(problem, policy), _money_limit(problem))


def _useful_s(problem: Problem, policy: Policy) -> float:
    """When a run is stopped at the latest, whatever budget is left."""
    rule = policy.timeout.rule
    fixed = math.inf
    if isinstance(rule, AtMost):
        fixed, rule = rule.seconds, rule.rule
    return min(fixed, math.inf if isinstance(rule, NoTimeout) else float(np.max(problem.ceiling_s)))


def _money_limit(problem: Problem) -> float:
    """The longest run that the whole budget could pay, on the cheapest configuration."""
    if math.isinf(problem.budget.usd):
        return math.inf
    return float(problem.billing.timeouts_for(np.asarray(problem.budget.usd), np.asarray(problem.price.min())))


def _longest(problem: Problem, limit_s: float, cheapest: float, most: float, parallel: int) -> float:
    """The longest that the search can last: the budget spent on the cheapest machines, or all trials as long as allowed."""
    by_money = math.inf if math.isinf(problem.budget.usd) else problem.budget.usd / cheapest / parallel + limit_s
    by_trials = math.ceil(most / parallel) * limit_s if math.isfinite(limit_s) else math.inf
    by_clock = (problem.budget.wall_clock_s or math.inf) + limit_s
    return min(by_money, by_trials, by_clock)


def _basis(limit_s: float, problem: Problem) -> str:
    if math.isinf(limit_s):
        return (
            "no deadline, max_duration or budget in dollars bounds a run, so neither its cost nor its time is bounded"
        )
    return (
        f"expected: runs of {TYPICAL:.0%} of the longest allowed ({format_duration(limit_s)}) at the median price; "
        "worst case: runs as long as allowed, money at the highest and time at the lowest price"
    )
