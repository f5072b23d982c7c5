"""Sums of money are not exact; what is left over by rounding buys nothing."""

import pytest

from lynceus.history import End, Observation, Order, Outcome, Plan, Told
from lynceus.policy import Because, Stopped, decide, preset
from lynceus.problem import Budget, Problem
from lynceus.space import Categorical, Space


def test_a_rest_of_rounding_starts_no_run() -> None:
    assert 1.1 - 0.7 - 0.4 > 0, "the rest that this is about"
    problem = Problem(Space.build([Categorical("vm", ["a", "b", "c"])], price=1.0), budget=Budget(1.1))
    seen = Observation(Order(0, 0, 2520.0, 0.7, Plan(0, "test")), Outcome(End.FINISHED, 2520.0, 0.7), Told(2520.0))
    under_way = Order(1, 1, 1440.0, 0.4, Plan(1, "test"))
    step = decide(problem, preset("sweep"), (seen,), (under_way,), seed=0)
    assert isinstance(step, Stopped)
    assert step.because is Because.BUDGET


def test_a_small_rest_is_still_money() -> None:
    problem = Problem(Space.build([Categorical("vm", ["a", "b"])], price=1.0), budget=Budget(1.0))
    seen = Observation(
        Order(0, 0, 3599.0, 1.0, Plan(0, "test")), Outcome(End.FINISHED, 3599.0, 3599 / 3600), Told(3599.0)
    )
    step = decide(problem, preset("random"), (seen,), seed=0)
    assert not isinstance(step, Stopped)
    assert step.cap_s == pytest.approx(1.0)
    assert step.reserved_usd <= 1.0 - 3599 / 3600
