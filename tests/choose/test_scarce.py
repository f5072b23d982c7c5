"""Which planner a budget gets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.choose import ByBudget, ByPrice, Uniform
from lynceus.history import Plan
from lynceus.parts import Surrogate
from lynceus.policy import preset
from lynceus.problem import Budget
from lynceus.situation import Situation
from lynceus.testing import SmallJob, check_chooser, small_job


@dataclass(frozen=True)
class Says:
    word: str

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        return Plan(0, why=self.word)


CHOOSER = ByBudget(Says("scarce"), Says("ample"), runs=4.0)


def asked(job: SmallJob, budget: Budget, late: bool = True) -> str:
    """What is said after two runs, of which none (or one) was in time."""
    problem = replace(job.problem, budget=budget)
    runs = job.finished(job.order_of_runs[:2])
    situation = Situation.present(problem, runs)
    plan = CHOOSER(replace(situation, best=np.array([np.nan if late else 1.0])), None, 0)
    assert plan is not None
    return plan.why


def test_it_keeps_the_promises_of_a_chooser() -> None:
    check_chooser(ByBudget(Uniform(), ByPrice()))


def test_a_budget_of_a_few_long_runs_is_scarce_until_something_is_feasible() -> None:
    job = small_job("runtime <= 30m")
    longest_usd = float(np.median(job.problem.price)) * 1800.0
    assert asked(job, Budget(3.99 * longest_usd)) == "scarce"
    assert asked(job, Budget(3.99 * longest_usd), late=False) == "ample"
    assert asked(job, Budget(4.01 * longest_usd)) == "ample"
    assert asked(job, Budget()) == "ample"


def test_without_a_limit_of_time_no_budget_is_scarce() -> None:
    """Whatever finishes is feasible: there is no fear of finding nothing."""
    assert asked(small_job(), Budget(0.01)) == "ample"


def test_a_few_runs_are_few_whatever_they_cost_and_find() -> None:
    job = small_job()
    assert asked(job, Budget(trials=12)) == asked(job, Budget(trials=12), late=False) == "scarce"
    assert asked(job, Budget(trials=13)) == "ample"


@pytest.mark.parametrize("wrong", [{"runs": -1.0}, {"trials": -1}])
def test_a_negative_number_of_runs_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        ByBudget(Says("a"), Says("b"), **wrong)


def test_the_default_plans_a_path_only_where_money_is_scarce() -> None:
    job = small_job("runtime <= 1s")
    runs = job.finished(job.order_of_runs[:2])

    def why(budget: Budget, lookahead: int | None = None) -> str:
        policy = preset("lynceus", lookahead)
        planner = policy.choose.choosers[-1]  # type: ignore[attr-defined]
        plan = planner(Situation.present(replace(job.problem, budget=budget), runs), policy.surrogate, 0)
        return str(plan.why)

    longest_usd = float(np.median(job.problem.price))
    assert ", 1 ahead" in why(Budget(2 * longest_usd))
    assert "ahead" not in why(Budget(20 * longest_usd))
    assert "ahead" not in why(Budget(2 * longest_usd), lookahead=0), "whoever names a depth gets it"
    assert ", 2 ahead" in why(Budget(20 * longest_usd), lookahead=2)
