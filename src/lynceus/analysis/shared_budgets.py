"""Budgets that studies share, as every answer shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.problem.units import format_money
from lynceus.trial.shared_budget import SharedBudget


@dataclass(frozen=True, kw_only=True)
class SharedBudgetUse:
    """What a project or a person may spend in this month, and has spent."""

    account: str
    """`project:NAME` or `owner:NAME`."""
    usd: float
    per: str = "month"
    """Calendar months in UTC."""
    month: str
    """Such as `November 2026`."""
    ends_s: float
    """When the month ends, seconds since the epoch."""
    charged_usd: float
    reserved_usd: float
    left_usd: float
    """Less than 0 when the budget was lowered below what is used."""

    @classmethod
    def of(cls, budget: SharedBudget) -> SharedBudgetUse:
        """The budget as an answer."""
        return cls(
            account=str(budget.account),
            usd=budget.usd,
            month=str(budget.month),
            ends_s=budget.month.end_s,
            charged_usd=budget.charged_usd,
            reserved_usd=budget.reserved_usd,
            left_usd=budget.left_usd,
        )


def budget_notes(found: Sequence[SharedBudget], worst_usd: float) -> list[str]:
    """Sentences about shared budgets that may end a search before it has found its answer."""
    return [
        f"{one.account} has {format_money(max(one.left_usd, 0.0))} left for {one.month}, less than this search may spend; it pauses there."
        for one in found
        if one.left_usd < worst_usd or math.isinf(worst_usd)
    ]
