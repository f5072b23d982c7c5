"""`lynceus budget`: what projects and people may spend in a month, over all studies of a storage."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import ByOption, author
from lynceus.cli.output import Output, OutputOption, console, echo, print_json, safe

if TYPE_CHECKING:
    from lynceus.trial.shared_budget import SharedBudget

budget = typer.Typer(help="What projects and people may spend in a month.", no_args_is_help=True)

AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help="project:NAME or owner:NAME.")]


class Period(enum.StrEnum):
    """How long a budget lasts."""

    MONTH = "month"


@budget.callback()
def _budget() -> None:
    """What projects and people may spend in a month, over all studies of a storage."""


@budget.command("set")
def set_(
    account: AccountArgument,
    amount: Annotated[str, typer.Argument(help="Money, such as '200 USD'.")],
    per: Annotated[Period, typer.Option(help="Calendar months, in UTC.")] = Period.MONTH,
    by: ByOption = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Limit what a project or a person may spend. Trials that would exceed it do not start; those that run finish."""
    from lynceus.analysis.shared_budgets import SharedBudgetUse
    from lynceus.library.find import storage_url
    from lynceus.problem.units import parse_money
    from lynceus.storage.sql.budgets import BudgetStore
    from lynceus.storage.sql.storage import Storage
    from lynceus.trial.shared_budget import Account

    who, usd = Account.parse(account), parse_money(amount, "budget")
    with Storage(storage_url(storage)) as opened:
        found = BudgetStore(opened).set(who, usd, by=author(by))
    if output is Output.JSON:
        print_json(SharedBudgetUse.of(found))
    else:
        echo(f"{found}.")


@budget.command("list")
def list_(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show every budget and what is used of it in this month."""
    from lynceus.analysis.shared_budgets import SharedBudgetUse
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.budgets import BudgetStore
    from lynceus.storage.sql.storage import Storage

    with Storage(storage_url(storage), create=False) as opened:
        found = BudgetStore(opened).all()
    if output is Output.JSON:
        print_json([SharedBudgetUse.of(one) for one in found])
    elif found:
        _print_budgets(found)
    else:
        echo("There are no shared budgets; set one with: lynceus budget set project:NAME '200 USD'")


@budget.command("remove")
def remove(
    account: AccountArgument, by: ByOption = None, storage: StorageOption = None, output: OutputOption = Output.TABLE
) -> None:
    """Let a project or a person spend without a shared limit; the budgets of studies stay."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.budgets import BudgetStore
    from lynceus.storage.sql.storage import Storage
    from lynceus.trial.shared_budget import Account

    who = Account.parse(account)
    with Storage(storage_url(storage), create=False) as opened:
        BudgetStore(opened).remove(who, by=author(by))
    if output is Output.JSON:
        print_json({"account": str(who), "usd": None})
    else:
        echo(f"{who} has no budget any more.")


def _print_budgets(found: Sequence[SharedBudget]) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_money

    table = Table()
    for heading in ("account", "month", "budget", "charged", "reserved", "left"):
        table.add_column(heading, no_wrap=True)
    for one in found:
        left = format_money(max(one.left_usd, 0.0))
        table.add_row(
            safe(str(one.account)),
            str(one.month),
            format_money(one.usd),
            format_money(one.charged_usd),
            format_money(one.reserved_usd),
            left if one.left_usd > 0 else f"[red]{left}[/]",
        )
    console().print(table)
