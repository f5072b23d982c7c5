"""A search under budgets that it shares with other studies: what is left of the tightest one limits what it may still spend."""

from __future__ import annotations

import math

from lynceus.policy.orders import ROUNDING
from lynceus.trial.record import Record
from lynceus.trial.shared_budget import SharedBudget
from lynceus.trial.stop import Stopped, StopReason


def tightest(record: Record) -> SharedBudget | None:
    """The shared budget with the least money left; None for a study that shares none."""
    return min(record.shared_budgets, key=lambda one: one.left_usd, default=None)


def limiting_budget(record: Record, own_usd: float) -> SharedBudget | None:
    """The shared budget that leaves a study less than its own budget of `own_usd`; None where the study's own is the limit."""
    return None if payable_usd(record) >= own_usd else tightest(record)


def payable_usd(record: Record) -> float:
    """The most that a study may spend in its whole life, by the budgets that it shares: what it has used, and what is left of them."""
    budget = tightest(record)
    if budget is None:
        return math.inf
    left = budget.left_usd if budget.left_usd > ROUNDING * budget.usd else min(budget.left_usd, 0.0)
    return max(record.spent_usd + record.reserved_usd + left, 0.0)


def shared_budget_stop(budget: SharedBudget) -> Stopped:
    """Why a study that could go on starts nothing now."""
    return Stopped(
        StopReason.SHARED_BUDGET, f"the next run costs more than the {budget}; {budget.way_out}, then resume"
    )
