"""The budgets of projects and people in a storage: set, read and removed."""

from __future__ import annotations

import math

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from lynceus.errors import InputError
from lynceus.problem.units import format_money
from lynceus.storage.sql.audit import AuditEntry, note_change
from lynceus.storage.sql.shared_budgets import budgets_of, shared_budgets
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tables import budgets
from lynceus.trial.shared_budget import Account, Payer, SharedBudget


class UnknownBudgetError(InputError):
    """A project or a person has no budget."""


class BudgetStore:
    """The budgets of a storage.

    >>> store = BudgetStore(Storage("sqlite://", now=lambda: 1_795_000_000.0))  # in memory, for this example
    >>> print(store.set(Account.parse("project:forecasts"), 200.0, by="ana"))
    $200.00 left of $200.00 of project:forecasts for November 2026 ($0 charged, $0 reserved)
    >>> [(str(one.account), one.left_usd) for one in store.all()]
    [('project:forecasts', 200.0)]
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def all(self) -> tuple[SharedBudget, ...]:
        """Every budget with what is used of it in this month."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            return budgets_of(connection, self.storage.clock.now(connection))

    def of(self, payer: Payer) -> tuple[SharedBudget, ...]:
        """The budgets on which runs of a payer draw."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            return shared_budgets(connection, payer, self.storage.clock.now(connection))

    def set(self, account: Account, usd: float, *, by: str) -> SharedBudget:
        """Let a project or a person spend so many dollars in a calendar month; holds for runs that start from now on."""
        if not (math.isfinite(usd) and usd >= 0):
            raise InputError(f"budget: {usd!r} dollars is no budget; give 0 or more, such as '200 USD'.")
        mine = (budgets.c.kind == str(account.kind)) & (budgets.c.name == account.name)
        with self.storage._writing() as connection:
            now = self.storage.clock.now(connection)
            before = _made_or_held(connection, account, usd)
            if before is not None:  # not a new row: workers that wait for the lock of this one would not see it
                connection.execute(update(budgets).where(mine).values(usd=usd))
            detail = {"before_usd": before, "usd": usd}
            note_change(connection, AuditEntry(now, by, "budget", str(account), detail))
            return budgets_of(connection, now, [account])[0]

    def remove(self, account: Account, *, by: str) -> None:
        """Let a project or a person spend without a shared limit; limits of studies stay."""
        mine = (budgets.c.kind == str(account.kind)) & (budgets.c.name == account.name)
        with self.storage._writing() as connection:
            now = self.storage.clock.now(connection)
            before = connection.execute(select(budgets.c.usd).where(mine).with_for_update()).scalar()
            if before is None:
                known = ", ".join(str(one.account) for one in budgets_of(connection, now)) or "none"
                raise UnknownBudgetError(f"budget: {account} has none in {self.storage.shown_url}; known are: {known}.")
            connection.execute(delete(budgets).where(mine))
            note_change(
                connection, AuditEntry(now, by, "budget", str(account), {"before_usd": float(before), "usd": None})
            )


def _made_or_held(connection: Connection, account: Account, usd: float) -> float | None:
    """Make a budget; None. Where there is one, also one that somebody else makes at this moment, what it was, and it is held."""
    mine = select(budgets.c.usd).where(budgets.c.kind == str(account.kind), budgets.c.name == account.name)
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    new = insert(budgets).values(kind=str(account.kind), name=account.name, usd=usd).on_conflict_do_nothing()
    while True:
        before = connection.execute(mine.with_for_update()).scalar()
        if before is not None:
            return float(before)
        if connection.execute(new.returning(budgets.c.name)).first() is not None:
            return None


def budget_refusal(budget: SharedBudget, needed_usd: float) -> str:
    """One clause about a run that a shared budget does not pay."""
    return f"it may cost {format_money(needed_usd)}, and there is only {budget}; {budget.way_out}"
