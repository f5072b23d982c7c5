"""Before anything is spent: how large the space is, what runs can cost, and how long the search can take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.policy import Policy
from lynceus.problem import Problem
from lynceus.timeout import AtMost, NoCap

TYPICAL = 0.5
"""Share of the deadline that a typical run is taken to need while nothing has been measured."""


@dataclass(frozen=True)
class Forecast:
    """Numbers for a person who is about to say yes. Dollars and seconds; infinite where nothing bounds them."""

    configurations: int
    price_low: float
    """Dollars per hour of the cheapest configuration."""
    price_median: float
    price_high: float
    run_limit_s: float
    """The longest that a run can be useful, or is allowed to take."""
    run_low_usd: float
    """A run of `run_limit_s` on the cheapest configuration."""
    run_high_usd: float
    """The same on the dearest."""
    trials_at_least: int | None
    """Trials that the budget surely pays for: all on the dearest machines, all as long as allowed. Nothing: unknown."""
    trials_at_most: int
    expected_spend_usd: float
    expected_time_s: float
    expected_trials: int
    worst_spend_usd: float
    worst_time_s: float
    basis: str
    """How expectation and worst case were made."""
    warning: str = ""
    """A sentence about what makes this search slower or dearer than it need be."""


def forecast(problem: Problem, policy: Policy, *, parallel: int = 1) -> Forecast:
    """What the exploration may cost in money and time, by arithmetic on prices, limits and the budget."""
    price, budget = problem.price, problem.budget
    limit_s = run_limit_s(problem, policy)
    low, middle, high = (float(np.quantile(price, share)) for share in (0.0, 0.5, 1.0))
    usd = problem.tariff.charge
    most = min(len(problem.space) * problem.repeats, budget.trials or math.inf)
    dearest = usd(limit_s, high) if math.isfinite(limit_s) else math.inf
    typical_s = limit_s * TYPICAL
    typical = usd(typical_s, middle) if math.isfinite(limit_s) else math.nan
    surely = (
        most
        if math.isinf(budget.usd)
        else min(most, 0 if math.isinf(dearest) else math.floor(budget.usd / dearest + 1e-9))
    )
    affordable = most if math.isinf(budget.usd) or math.isnan(typical) else min(most, max(1.0, budget.usd // typical))
    wall = budget.wall_clock_s or math.inf
    expected_time = math.ceil(affordable / parallel) * typical_s if math.isfinite(limit_s) else math.inf
    return Forecast(
        configurations=len(problem.space),
        price_low=low * 3600,
        price_median=middle * 3600,
        price_high=high * 3600,
        run_limit_s=limit_s,
        run_low_usd=usd(limit_s, low) if math.isfinite(limit_s) else math.inf,
        run_high_usd=dearest,
        trials_at_least=None if math.isinf(dearest) else int(surely),
        trials_at_most=int(most),
        expected_spend_usd=min(budget.usd, affordable * typical) if math.isfinite(limit_s) else budget.usd,
        expected_time_s=min(wall + typical_s, expected_time),
        expected_trials=int(affordable),
        worst_spend_usd=min(budget.usd, most * dearest),
        worst_time_s=_longest(problem, limit_s, low, most, parallel),
        basis=_basis(limit_s, problem),
        warning=_warning(problem, policy, parallel),
    )


def _warning(problem: Problem, policy: Policy, parallel: int) -> str:
    """A run that only money can stop reserves all of it."""
    if math.isinf(problem.budget.usd) or not math.isinf(_useful_s(problem, policy)):
        return ""
    slower = ", so that trials run one after another" if parallel > 1 else ""
    return (
        "nothing but the budget bounds a run: each trial reserves all the money that is left"
        f"{slower}; add a constraint on runtime, or trial.max_duration"
    )


def run_limit_s(problem: Problem, policy: Policy) -> float:
    """The longest time of a run: a fixed cap, the deadline when runs are stopped there, or what money can buy."""
    return min(_useful_s(problem, policy), _money_limit(problem))


def _useful_s(problem: Problem, policy: Policy) -> float:
    """When a run is stopped at the latest, whatever money is left."""
    cap = policy.timeout.cap
    fixed = math.inf
    if isinstance(cap, AtMost):
        fixed, cap = cap.seconds, cap.cap
    return min(fixed, math.inf if isinstance(cap, NoCap) else float(np.max(problem.ceiling_s)))


def _money_limit(problem: Problem) -> float:
    """The longest run that the whole budget could pay, on the cheapest configuration."""
    if math.isinf(problem.budget.usd):
        return math.inf
    return float(problem.tariff.seconds_for(np.asarray(problem.budget.usd), np.asarray(problem.price.min())))


def _longest(problem: Problem, limit_s: float, cheapest: float, most: float, parallel: int) -> float:
    """The longest that the search can last: all money spent on the cheapest machines, or all trials at their limit."""
    by_money = math.inf if math.isinf(problem.budget.usd) else problem.budget.usd / cheapest / parallel + limit_s
    by_trials = math.ceil(most / parallel) * limit_s if math.isfinite(limit_s) else math.inf
    by_clock = (problem.budget.wall_clock_s or math.inf) + limit_s
    return min(by_money, by_trials, by_clock)


def _basis(limit_s: float, problem: Problem) -> str:
    from lynceus.units import format_duration

    if math.isinf(limit_s):
        return (
            "no deadline, max_duration or budget in dollars bounds a run, so neither its cost nor its time is bounded"
        )
    return (
        f"expected: runs of {TYPICAL:.0%} of the longest allowed ({format_duration(limit_s)}) at the median price; "
        "worst case: runs as long as allowed, money at the dearest and time at the cheapest price"
    )
