"""The problem: ceilings, values, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.testing.job import SmallJob, small_job
from strategies import jobs


@given(jobs(), st.integers(0, 23), st.floats(0.0, 1e5))
def test_the_ceiling_is_the_longest_feasible_time(job: SmallJob, row: int, ran: float) -> None:
    problem = replace(
        job.problem,
        constraints=tuple(constraint for constraint in job.problem.constraints if constraint.metric != "accuracy"),
    )
    ceiling = float(problem.ceiling_s[row])
    assume(abs(ran - ceiling) > 1e-6 * max(ran, 1.0))
    feasible = problem.meets_constraints(row, ran, {})
    assert feasible == (ran <= ceiling)
    if math.isfinite(ceiling):
        assert float(problem.ceiling_usd[row]) == pytest.approx(problem.cost(row, ceiling))
    if feasible:
        assert problem.cost(row, ran) <= problem.ceiling_usd[row] * (1 + 1e-9)


def test_a_row_whose_start_exceeds_the_bound_is_never_feasible() -> None:
    problem = small_job("cost <= $0.10", billing=Billing(fee_usd=0.2)).problem
    assert np.isneginf(problem.ceiling_s).all()
    assert np.isneginf(problem.ceiling_usd).all()


def test_the_tightest_deadline_counts() -> None:
    problem = small_job("runtime <= 30m", "runtime <= 20m").problem
    assert problem.deadline_s == 1200.0
    assert small_job().problem.deadline_s == math.inf
    assert problem.with_constraints(()).deadline_s == math.inf
    assert problem.deadline_s == 1200.0


def test_values_and_constraints() -> None:
    cost = small_job("runtime <= 30m", "accuracy >= 0.9", billing=Billing(boot_s=60.0)).problem
    assert cost.value(0, 600.0, {}) == pytest.approx(660.0 * float(cost.price[0]))
    assert cost.meets_constraints(0, 1800.0, {"accuracy": 0.9})
    assert not cost.meets_constraints(0, 1800.1, {"accuracy": 0.9})
    assert not cost.meets_constraints(0, 1800.0, {"accuracy": 0.89})
    assert not cost.meets_constraints(0, 1800.0, {}), "an unreported metric meets no constraint"
    assert small_job(objective="time").problem.value(0, 600.0, {}) == 600.0
    assert small_job(objective="maximize accuracy").problem.value(0, 600.0, {"accuracy": 0.9}) == -0.9
    assert small_job(objective="minimize accuracy").problem.value(0, 600.0, {"accuracy": 0.9}) == 0.9


def test_metrics_in_order_of_appearance() -> None:
    problem = small_job("runtime <= 30m", "memory <= 4", "accuracy >= 0.5", objective="maximize accuracy").problem
    assert problem.metrics == ("accuracy", "memory")
    assert problem.kind == "metric"
    assert [constraint.metric for constraint in problem.metric_constraints] == ["memory", "accuracy"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"testable": np.ones(3, dtype=bool)}, r"testable: got a mask of shape \(3,\) for 24 configurations"),
        ({"testable": np.zeros(24, dtype=bool)}, "testable: no configuration is left"),
        ({"answerable": np.zeros(24, dtype=bool)}, "answerable: no configuration is left"),
        ({"repeats": 0}, "repeats: got 0; allow at least 1 run of every configuration"),
        ({"billing": Billing(warm=("colour",))}, "colour"),
    ],
)
def test_invalid_problems_are_errors(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(small_job().problem, **changes)  # type: ignore[arg-type]


def test_another_budget_and_other_constraints() -> None:
    problem = small_job("runtime <= 30m", budget=Budget(usd=3.0, trials=4)).problem
    assert problem.with_budget(5.0).budget == Budget(usd=5.0, trials=4)
    assert isinstance(problem.with_constraints([Constraint("time", 60.0)]), Problem)
    assert problem.with_constraints([Constraint("time", 60.0)]).ceiling_s.max() == 60.0
