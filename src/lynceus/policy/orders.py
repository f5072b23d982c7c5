"""Orders: what a run may cost at most, and the money reserved for it. The one place where an order is built."""

from __future__ import annotations

import math

import numpy as np

from lynceus.models.state import State, is_warm
from lynceus.space.column import FloatArray
from lynceus.trial.order import Order, Plan

ROUNDING = 1e-9
"""Share of the budget below which money left over is the error of a sum."""


def order_for(state: State, plan: Plan, timeout_s: float, *, boots: bool | None = None) -> Order:
    """The next order of a study: a plan with its timeout, whether machines boot, and the money reserved for it."""
    problem, row = state.problem, plan.row
    if boots is None:
        boots = not is_warm(state)[0, row]
    if math.isinf(timeout_s):
        reserved = math.inf if math.isfinite(problem.budget.usd) else 0.0
    else:
        # timeouts_for rounds in the user's favour by one part in 10⁹; the reservation must not.
        charge = problem.billing.largest_charge(timeout_s, float(problem.price[row]), boots=boots)
        reserved = min(charge, max(float(state.left[0]), 0.0))
    return Order(state.started, row, timeout_s, reserved, plan, boots, problem.input)


def affordable_seconds(state: State, slots: int = 1) -> FloatArray:
    """How long each row may run before the money left is used up `[q]`, or before its fair share for one of several slots is.

    A row whose share does not even pay its start may use all the money left.
    """
    problem = state.problem
    left = float(state.left[0])
    # 1.1 − 0.7 − 0.4 is 10⁻¹⁶ dollars: money that is only rounding must not buy a run of no time.
    if math.isfinite(left) and left <= ROUNDING * problem.budget.usd:
        left = min(left, 0.0)
    boots = ~is_warm(state)[0]
    whole = problem.billing.timeouts_for(np.full(problem.price.shape, left), problem.price, boots=boots)
    if slots == 1:
        return whole
    share = problem.billing.timeouts_for(np.full(problem.price.shape, left / slots), problem.price, boots=boots)
    return np.where(share > 0, share, whole)
