"""A floor under a model: a search that trusts it never spends much more than one that only goes from cheap to expensive.

The *sweep* runs configurations in order of price, each until its timeout. It knows nothing, so it cannot be misled. Let S be what the
sweep spends until it has run the best configuration. `NotFarBehind` spends at most (1 + factor) · S + grant until then, whatever the
model believes and whatever the job does (docs/policy.md has the proof).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.policy.interfaces import Chooser
from lynceus.policy.orders import affordable_seconds
from lynceus.policy.planners.simple import ByPrice
from lynceus.problem.problem import Problem
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class NotFarBehind:
    """The plan of a chooser, as long as the money for it stays in proportion to the money of a sweep; else the sweep's next run.

    The sweep has passed every configuration that costs less per hour than the cheapest open one. To pass them it would have spent at
    least `passed_usd`. A plan may run if everything spent, with the most that this run can be charged, is at most
    (1 + factor) · passed_usd + grant.
    """

    chooser: Chooser
    factor: float = 3.0
    """Dollars for the chooser's plans per dollar of the sweep. The search costs at most 1 + factor times as much as the sweep."""
    grant: float = 8.0
    """What may be spent before the sweep has spent anything, in multiples of the most that a run of the cheapest
    configuration can be charged."""

    def __post_init__(self) -> None:
        if not (self.factor >= 0 and self.grant >= 0):
            raise ValueError(f"factor {self.factor} and grant {self.grant} must not be negative")

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The chooser's plan, or the cheapest open row with the chooser's numbers."""
        plan = self.chooser(state, surrogate, seed)
        if plan is None:
            return None
        cheapest = ByPrice()(state, None, seed)
        if cheapest is None or plan.row == cheapest.row or self._affords(state, plan, cheapest.row):
            return plan
        why = f"{cheapest.why}: the model has had its share of the money, and going by price has not"
        return replace(
            plan, row=cheapest.row, why=why, gain=math.nan, probability=math.nan, usd=math.nan, expected=None, path=()
        )

    def _affords(self, state: State, plan: Plan, cheapest: int) -> bool:
        """Whether the bound holds even if the plan's run is charged the most that it can be."""
        spent = sum(seen.outcome.charged_usd for seen in state.observations)
        reserved = sum(order.reserved_usd for order in state.pending)
        allowed = (1.0 + self.factor) * passed_usd(state, cheapest) + self.grant * _first_usd(state)
        return spent + reserved + _most_usd(state, plan) <= allowed


def passed_usd(state: State, cheapest: int) -> float:
    """The least that a sweep would have spent on the configurations that cost less per hour than the open row `cheapest`.

    A run that was charged c would have been charged at least min(c, C*) in a sweep, where C* is the best cost now: the incumbent of a
    sweep that has passed the same configurations is not better, because each of them has run here until it was at least as expensive.
    A sweep stops every run at its limits, so what a run was charged beyond them does not count.
    """
    problem, price = state.problem, state.problem.price
    best = float(state.best[0]) if state.problem.kind == "cost" and not np.isnan(state.best[0]) else math.inf
    charged: dict[int, float] = {}
    for seen in state.observations:
        if price[seen.row] <= price[cheapest] and seen.row != cheapest:
            charged[seen.row] = max(
                charged.get(seen.row, 0.0), min(seen.outcome.charged_usd, limit_usd(problem, seen.row))
            )
    return sum(min(usd, best) for usd in charged.values())


def _most_usd(state: State, plan: Plan) -> float:
    """The most that the plan's run can be charged; what is expected, where no limit ends it."""
    longest_s = min(float(state.timeouts_s()[0, plan.row]), float(affordable_seconds(state)[plan.row]))
    if math.isinf(longest_s):
        return 0.0 if math.isnan(plan.usd) else plan.usd
    return state.problem.billing.charge(max(longest_s, 0.0), float(state.problem.price[plan.row]))


def _first_usd(state: State) -> float:
    """The most that the cheapest configuration can be charged under the limits of the problem; else what the first run was charged."""
    limit = limit_usd(state.problem, int(np.argmin(state.problem.price)))
    if math.isfinite(limit):
        return limit
    return next((seen.outcome.charged_usd for seen in state.observations if seen.outcome.charged_usd > 0), math.inf)


def limit_usd(problem: Problem, row: int) -> float:
    """The most that a run can be charged that ends within the limits of the problem; infinite where there are none."""
    ceiling_s = float(problem.ceiling_s[row])
    return problem.billing.charge(ceiling_s, float(problem.price[row])) if math.isfinite(ceiling_s) else math.inf
