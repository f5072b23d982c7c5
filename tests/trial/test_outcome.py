"""Plans, orders, outcomes and observations: values are validated and immutable."""

import dataclasses
import math

import pytest

from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_seconds_must_be_finite_and_not_negative(seconds: float) -> None:
    with pytest.raises(ValueError, match="a run cannot take"):
        Outcome(End.FINISHED, seconds, 0.0)


@pytest.mark.parametrize("usd", [-0.01, math.nan, math.inf])
def test_charge_must_be_finite_and_not_negative(usd: float) -> None:
    with pytest.raises(ValueError, match="a run cannot be charged"):
        Outcome(End.FINISHED, 1.0, usd)


def test_only_failed_runs_have_a_reason() -> None:
    Outcome(End.FAILED, 0.0, 0.0, reason=FailureReason.JOB)
    with pytest.raises(ValueError, match="failed runs, and only they, have one"):
        Outcome(End.FAILED, 0.0, 0.0)
    with pytest.raises(ValueError, match="failed runs, and only they, have one"):
        Outcome(End.TIMEOUT, 1.0, 0.0, reason=FailureReason.OOM)


def test_failure_reasons_that_blame_the_configuration() -> None:
    assert {reason for reason in FailureReason if reason.blames_configuration} == {FailureReason.OOM, FailureReason.JOB}


@pytest.mark.parametrize(
    "value",
    [
        Plan(3, why="tested"),
        Order(0, 3, 10.0, 0.1, Plan(3, why="tested")),
        Outcome(End.FINISHED, 1.0, 0.1),
        TrainingTarget(1.0),
    ],
)
def test_values_are_frozen(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 7)


def test_default_metrics_are_read_only() -> None:
    with pytest.raises(TypeError):
        Outcome(End.FINISHED, 1.0, 0.1).metrics["accuracy"] = 1.0  # type: ignore[index]


def test_an_observation_has_an_outcome_and_a_training_target() -> None:
    order = Order(0, 3, 10.0, 0.1, Plan(3, why="tested"))
    seen = Observation(order, Outcome(End.TIMEOUT, 10.0, 0.1), TrainingTarget(25.0, censored=True, bound_s=10.0))
    assert (seen.row, seen.outcome.seconds, seen.target.seconds if seen.target else None) == (3, 10.0, 25.0)
