"""Which planner is used for which budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.policy.planners.by_budget import ByBudget
from lynceus.policy.planners.simple import ByPrice, Uniform
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.testing.choosers import check_chooser
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class Says:
    text: str

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        return Plan(0, why=self.text)


CHOOSER = ByBudget(Says("scarce"), Says("ample"), runs=4.0)


def why(job: SmallJob, budget: Budget, late: bool = True) -> str:
    """The plan's reason after two runs, of which none (or one) was on time."""
    problem = replace(job.problem, budget=budget)
    runs = job.finished(job.order_of_runs[:2])
    state = State.present(problem, runs)
    plan = CHOOSER(replace(state, best=np.array([np.nan if late else 1.0])), None, 0)
    assert plan is not None
    return plan.why


def test_it_meets_the_contract_of_choosers() -> None:
    check_chooser(ByBudget(Uniform(), ByPrice()))


def test_a_budget_of_a_few_long_runs_is_scarce_until_a_run_is_feasible() -> None:
    job = small_job("runtime <= 30m")
    longest_usd = float(np.median(job.problem.price)) * 1800.0
    assert why(job, Budget(3.99 * longest_usd)) == "scarce"
    assert why(job, Budget(3.99 * longest_usd), late=False) == "ample"
    assert why(job, Budget(4.01 * longest_usd)) == "ample"
    assert why(job, Budget()) == "ample"


def test_without_a_deadline_no_budget_is_scarce() -> None:
    """Every finished run is feasible."""
    assert why(small_job(), Budget(0.01)) == "ample"


def test_few_runs_are_scarce_whatever_they_cost_and_find() -> None:
    job = small_job()
    assert why(job, Budget(trials=12)) == why(job, Budget(trials=12), late=False) == "scarce"
    assert why(job, Budget(trials=13)) == "ample"


@pytest.mark.parametrize("wrong", [{"runs": -1.0}, {"trials": -1}])
def test_a_negative_number_of_runs_is_an_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        ByBudget(Says("a"), Says("b"), **wrong)


def test_the_default_plans_a_path_only_with_a_scarce_budget() -> None:
    job = small_job("runtime <= 1s")
    runs = job.finished(job.order_of_runs[:2])

    def reason(budget: Budget, lookahead: int | None = None) -> str:
        policy = preset("lynceus", lookahead)
        planner = policy.choose.choosers[-1]  # type: ignore[attr-defined]
        plan = planner(State.present(replace(job.problem, budget=budget), runs), policy.surrogate, 0)
        return str(plan.why)

    longest_usd = float(np.median(job.problem.price))
    assert ", 1 ahead" in reason(Budget(2 * longest_usd))
    assert "ahead" not in reason(Budget(20 * longest_usd))
    assert "ahead" not in reason(Budget(2 * longest_usd), lookahead=0), "an explicit depth is used"
    assert ", 2 ahead" in reason(Budget(20 * longest_usd), lookahead=2)
