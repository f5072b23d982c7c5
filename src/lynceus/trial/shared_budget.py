"""Budgets that several studies share: what a project or a person may spend in a calendar month."""

from __future__ import annotations

import enum
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from lynceus.errors import InputError
from lynceus.problem.units import format_money

LONGEST_NAME = 200


class PayerKind(enum.StrEnum):
    """Who has a budget."""

    PROJECT = "project"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for a study or a recurring job: a project, a person, both or neither."""

    project: str | None = None
    owner: str | None = None

    def __post_init__(self) -> None:
        for kind in PayerKind:
            if (name := getattr(self, kind)) is not None:
                check_payer_name(name, str(kind))

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Whose budgets its runs draw on, in the order in which they are locked."""
        names = ((kind, getattr(self, kind)) for kind in sorted(PayerKind))
        return tuple(Account(kind, name) for kind, name in names if name is not None)

    def draws_on(self, budgets: Iterable[SharedBudget]) -> tuple[SharedBudget, ...]:
        """Those of the budgets on which its runs draw."""
        return tuple(one for one in budgets if one.account in self.accounts)


@dataclass(frozen=True, slots=True, order=True)
class Account:
    """A project or a person with a budget, written `project:forecasts` or `owner:ana`.

    >>> Account.parse("project:forecasts")
    Account(kind=<PayerKind.PROJECT: 'project'>, name='forecasts')
    """

    kind: PayerKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Account:
        """An account from its text."""
        kind, sign, name = text.partition(":")
        if not sign or kind not in set(PayerKind):
            raise InputError(f"budget: got {text[:60]!r}; write project:NAME or owner:NAME.")
        check_payer_name(name, kind)
        return cls(PayerKind(kind), name)


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC."""

    begin_s: float
    """Seconds since the epoch, like the next field."""
    end_s: float

    @classmethod
    def of(cls, now_s: float) -> Month:
        """The month of a moment."""
        begin = datetime.fromtimestamp(now_s, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        year, month = (begin.year + 1, 1) if begin.month == 12 else (begin.year, begin.month + 1)
        return cls(begin.timestamp(), begin.replace(year=year, month=month).timestamp())

    def __str__(self) -> str:
        return f"{datetime.fromtimestamp(self.begin_s, UTC):%B %Y}"

    @property
    def next_day(self) -> str:
        """The day on which the next month begins.

        >>> Month.of(1_795_000_000.0).next_day
        '1 December'
        """
        return f"1 {datetime.fromtimestamp(self.end_s, UTC):%B}"


@dataclass(frozen=True, slots=True)
class SharedBudget:
    """The budget of a project or a person, and how much of it is used.

    >>> budget = SharedBudget(Account.parse("owner:ana"), 200.0, Month.of(1_795_000_000.0), 188.2, 10.0)
    >>> round(budget.left_usd, 2)
    1.8
    """

    account: Account
    usd: float
    """Dollars that may be spent in the month."""
    month: Month
    charged_usd: float
    """What runs that ended in this month were charged: trials, production runs, and those of deleted studies."""
    reserved_usd: float
    """What open trials may still be charged at most, and open canaries beyond a run of the adopted version, which is never refused."""

    @property
    def left_usd(self) -> float:
        """Dollars that nobody has spent or reserved; less than 0 when the budget was lowered below that."""
        return self.usd - self.charged_usd - self.reserved_usd

    @property
    def way_out(self) -> str:
        """What to do when it is used up."""
        more = f"lynceus budget set {shlex.quote(str(self.account))} '{max(math.ceil(1.5 * self.usd), 1)} USD'"
        open_trials = "open trials end, or until " if self.reserved_usd > 0 else ""
        return f"wait until {open_trials}{self.month.next_day} (UTC), or raise it with: {more}"

    def __str__(self) -> str:
        used = f"{format_money(self.charged_usd)} charged, {format_money(self.reserved_usd)} reserved"
        return f"{format_money(max(self.left_usd, 0.0))} left of {format_money(self.usd)} of {self.account} for {self.month} ({used})"


def is_payer_name(name: str) -> bool:
    """Whether a column can hold a name, and a user can type it again."""
    return name == name.strip() and name.isprintable() and 0 < len(name) <= LONGEST_NAME


def check_payer_name(name: str, what: str) -> None:
    """Refuse a text that is no name of a project or a person."""
    if not is_payer_name(name):
        raise InputError(
            f"{what}: got {name[:60]!r}; give 1 to {LONGEST_NAME} printable characters, such as forecasts."
        )
