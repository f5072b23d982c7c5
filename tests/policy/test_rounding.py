"""Sums of dollars are not exact; a rounding remainder does not start a run."""

import pytest

from deciding import decide
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget
from lynceus.trial.stop import Stopped, StopReason


def test_a_rounding_remainder_does_not_start_a_run() -> None:
    assert 1.1 - 0.7 - 0.4 > 0, "the rounding remainder"
    problem = Problem(Space.build([Categorical("vm", ["a", "b", "c"])], price=1.0), budget=Budget(1.1))
    seen = Observation(
        Order(0, 0, 2520.0, 0.7, Plan(0, "test")), Outcome(End.FINISHED, 2520.0, 0.7), TrainingTarget(2520.0)
    )
    pending = Order(1, 1, 1440.0, 0.4, Plan(1, "test"))
    step = decide(problem, preset("sweep"), (seen,), (pending,), seed=0)
    assert isinstance(step, Stopped)
    assert step.kind is StopReason.BUDGET


def test_a_small_remaining_budget_is_used() -> None:
    problem = Problem(Space.build([Categorical("vm", ["a", "b"])], price=1.0), budget=Budget(1.0))
    seen = Observation(
        Order(0, 0, 3599.0, 1.0, Plan(0, "test")), Outcome(End.FINISHED, 3599.0, 3599 / 3600), TrainingTarget(3599.0)
    )
    step = decide(problem, preset("random"), (seen,), seed=0)
    assert not isinstance(step, Stopped)
    assert step.timeout_s == pytest.approx(1.0)
    assert step.reserved_usd <= 1.0 - 3599 / 3600
