"""The sections `budget` and `billing`: what the search may spend, and how running time is charged."""

from __future__ import annotations

from pydantic import Field, model_validator

from lynceus.problem.billing import Billing
from lynceus.problem.fields import Duration, Money, Section


class BudgetSection(Section):
    """What the search may spend; running trials count with the most they can cost."""

    cost: Money | None = Field(default=None, description="dollars for all trials together, a hard limit")
    wall_clock: Duration | None = Field(default=None, description="no trial starts after this time")
    max_trials: int | None = Field(default=None, ge=1, description="the largest number of trials to start")

    @model_validator(mode="before")
    @classmethod
    def _from_money(cls, value: object) -> object:
        return value if isinstance(value, dict) else {"cost": value}

    @model_validator(mode="after")
    def _some(self) -> BudgetSection:
        if self.cost is None and self.wall_clock is None and self.max_trials is None:
            raise ValueError("it has no limit; give at least one of cost, wall_clock and max_trials.")
        return self


class RateSection(Section):
    """How running time becomes money."""

    granularity: Duration = Field(default=0.0, description="billed time is rounded up to a multiple of this")
    minimum: Duration = Field(default=0.0, description="the shortest time that is billed")
    boot: Duration = Field(default=0.0, description="billed before the job starts, when machines are booted for it")
    fee: Money = Field(default=0.0, description="dollars per boot")

    def billing(self) -> Billing:
        """The billing that it describes."""
        return Billing(self.granularity, self.minimum, self.boot, self.fee)


class BillingSection(RateSection):
    """How running time becomes money, and which machines are reused."""

    warm: list[str] = Field(
        default=[], description="columns that identify the machines: equal ones are not booted again"
    )

    def billing(self) -> Billing:
        """The billing that it describes."""
        return Billing(self.granularity, self.minimum, self.boot, self.fee, tuple(self.warm))
