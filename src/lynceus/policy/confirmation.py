"""Confirmation: repeated runs of the incumbent before it is recommended, paid from a reserved part of the budget."""

from __future__ import annotations

import math

import numpy as np

from lynceus.models.state import State
from lynceus.policy.orders import order_for
from lynceus.policy.retries import RetryRules
from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import incumbent
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import FailureReason, Observations

RESERVED_SHARE = 0.10
"""Share of the budget reserved for the confirmation while no feasible configuration is known."""
LARGEST_SHARE = 0.25
"""Largest share of the budget that the confirmation may reserve."""
MARGIN = 1.5
"""A repeated run may cost so many times what the best run cost."""


def reserved_for_confirmation(problem: Problem, observations: Observations, rules: RetryRules) -> float:
    """Dollars of the budget that wait for the confirmation of the incumbent."""
    total = problem.budget.usd
    left = rules.confirm_best - _confirmations(observations)
    if left <= 0 or math.isinf(total):
        return 0.0
    best = incumbent(problem, observations)
    if best is None:
        return RESERVED_SHARE * total
    cost = max(seen.outcome.charged_usd for seen in observations if seen.row == best.row)
    return min(left * MARGIN * cost, LARGEST_SHARE * total)


def confirmation(problem: Problem, observations: Observations, rules: RetryRules) -> Order | None:
    """The next repeated run of the incumbent; None when it has been confirmed, or cannot be paid. No trial may be open."""
    done = _confirmations(observations)
    best = incumbent(problem, observations)
    if done >= rules.confirm_best or best is None:
        return None
    row = best.row
    state = State.present(problem, observations)
    affordable = float(problem.billing.timeouts_for(state.left[0], np.asarray(float(problem.price[row]))))
    # A run twice as slow as the slowest so far refutes the incumbent; so does a run that breaks the constraints.
    slowest = max(seen.outcome.seconds for seen in observations if seen.row == row)
    timeout_s = min(affordable, max(float(problem.ceiling_s[row]), 0.0), 2 * MARGIN * slowest)
    if timeout_s < slowest:
        return None
    why = f"confirms the best ({done + 1} of {rules.confirm_best})"
    plan = Plan(row, why=why, stoppable=False, purpose=Purpose.CONFIRM)
    return order_for(state, plan, timeout_s, boots=True)


def _confirmations(observations: Observations) -> int:
    return sum(
        seen.order.plan.purpose is Purpose.CONFIRM
        and seen.outcome.reason not in (FailureReason.INFRA, FailureReason.PREEMPTED)
        for seen in observations
    )
