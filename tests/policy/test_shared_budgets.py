"""Budgets that studies share limit what a study orders: never more than is left, and a pause with a way out when nothing is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.policy.next_step import next_step
from lynceus.problem.budget import Budget
from lynceus.trial.order import Order
from lynceus.trial.record import OpenRun, Record
from lynceus.trial.shared_budget import Account, Month, Payer, SharedBudget
from lynceus.trial.stop import Stopped, StopReason

NOW = 1_795_000_000.0  # 18 November 2026
SPACE = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="3.6 * nodes")
PROBLEM = lynceus.Problem(
    SPACE, constraints=(lynceus.Constraint.parse("runtime <= 1000s"),), budget=lynceus.Budget(usd=100.0)
)
SWEEP, RULES = lynceus.preset("sweep"), lynceus.RetryRules()


def budget(left: float, name: str = "forecasts", usd: float = 200.0) -> SharedBudget:
    return SharedBudget(Account.parse(f"project:{name}"), usd, Month.of(NOW), usd - left, 0.0)


def decision(record: Record, problem: lynceus.Problem = PROBLEM) -> Order | Stopped:
    return next_step(problem, SWEEP, RULES, record, seed=0).decision


def test_an_order_never_reserves_more_than_the_tightest_budget_has_left() -> None:
    free = decision(Record("free"))
    assert isinstance(free, Order)
    assert free.reserved_usd == pytest.approx(1.0)
    tight = decision(Record("tight", shared_budgets=(budget(50.0), budget(0.25, "other"))))
    assert isinstance(tight, Order)
    assert tight.reserved_usd <= 0.25
    assert tight.timeout_s == pytest.approx(250.0)


def test_a_study_without_a_budget_of_its_own_is_limited_as_well() -> None:
    endless = replace(PROBLEM, budget=Budget(), constraints=())
    assert decision(Record("free"), endless).reserved_usd == 0.0  # type: ignore[union-attr]
    order = decision(Record("shared", shared_budgets=(budget(0.5),)), endless)
    assert isinstance(order, Order)
    assert 0 < order.reserved_usd <= 0.5
    assert math.isfinite(order.timeout_s)


@pytest.mark.parametrize("left", [0.0, -3.0, 1e-13])
def test_without_money_the_study_pauses_and_says_what_to_do(left: float) -> None:
    stopped = decision(Record("broke", shared_budgets=(budget(left),)))
    assert isinstance(stopped, Stopped)
    assert (stopped.kind, stopped.study_state) == (StopReason.SHARED_BUDGET, "PAUSED")
    assert "of project:forecasts for November 2026" in stopped.reason
    assert (
        "wait until 1 December (UTC), or raise it with: lynceus budget set project:forecasts '300 USD'"
        in stopped.reason
    )


def test_money_that_open_trials_may_give_back_is_worth_waiting_for() -> None:
    reserved = SharedBudget(Account.parse("project:forecasts"), 200.0, Month.of(NOW), 150.0, 50.0)
    assert reserved.way_out.startswith("wait until open trials end, or until 1 December (UTC), or raise it with: ")


def test_a_study_that_would_end_anyway_ends_with_its_own_reason() -> None:
    spent = Record("spent", stopped=Stopped(StopReason.EXHAUSTED, "every configuration has been run"))
    assert decision(replace(spent, shared_budgets=(budget(0.0),))) == spent.stopped


def test_the_money_of_open_runs_is_not_counted_twice() -> None:
    """What is left of a shared budget is without the study's own reservations, which its own budget counts, too."""
    first = decision(Record("one", shared_budgets=(budget(1.5),)))
    assert isinstance(first, Order)
    record = Record("one", open_runs=(OpenRun(first),), shared_budgets=(budget(1.5 - first.reserved_usd),))
    second = decision(record)
    assert isinstance(second, Order)
    assert second.reserved_usd == pytest.approx(1.5 - first.reserved_usd)


def test_rows_that_only_lack_shared_money_stay_in_the_queue() -> None:
    record = Record("queued", queue=(3, 0), shared_budgets=(budget(0.0),))
    step = next_step(PROBLEM, SWEEP, RULES, record, seed=0)
    assert (step.queue, isinstance(step.decision, Stopped)) == ((3, 0), True)
    paid = next_step(PROBLEM, SWEEP, RULES, replace(record, shared_budgets=(budget(9.0),)), seed=0)
    assert isinstance(paid.decision, Order)
    assert (paid.decision.row, paid.queue) == (3, (0,))


@pytest.mark.parametrize(
    "text", ["forecasts", "team:a", "project:", "owner: ana", "project:a\nb", "owner:" + "x" * 201]
)
def test_texts_that_name_nobody_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"write project:NAME or owner:NAME|give 1 to 200 printable"):
        Account.parse(text)


@pytest.mark.parametrize(
    ("now_s", "begin_s", "end_s"),
    [(0.0, 0.0, 31 * 86400.0), (1_798_761_599.0, 1_796_083_200.0, 1_798_761_600.0)],  # the last second of 2026
)
def test_months_are_calendar_months_in_utc(now_s: float, begin_s: float, end_s: float) -> None:
    assert (Month.of(now_s).begin_s, Month.of(now_s).end_s) == (begin_s, end_s)
    assert Month.of(end_s).begin_s == end_s


def test_accounts_come_in_one_order_so_that_locks_do() -> None:
    assert [str(one) for one in Payer("zeta", "ana").accounts] == ["owner:ana", "project:zeta"]
    assert Payer().accounts == ()


def test_the_way_out_can_be_pasted_into_a_shell() -> None:
    one = SharedBudget(Account.parse("project:sales & more"), 200.0, Month.of(1_795_000_000.0), 200.0, 0.0)
    assert "lynceus budget set 'project:sales & more' '300 USD'" in one.way_out
