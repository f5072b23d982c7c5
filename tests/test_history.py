"""Plans, orders, outcomes, observations: facts that cannot be built wrong or changed."""

import dataclasses
import math

import pytest

from lynceus.history import End, Observation, Order, Outcome, Plan, Reason, Told


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_run_takes_a_finite_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="a run cannot take"):
        Outcome(End.FINISHED, seconds, 0.0)


@pytest.mark.parametrize("usd", [-0.01, math.nan, math.inf])
def test_a_run_costs_a_finite_amount(usd: float) -> None:
    with pytest.raises(ValueError, match="a run cannot be charged"):
        Outcome(End.FINISHED, 1.0, usd)


def test_failed_runs_and_only_they_have_a_reason() -> None:
    Outcome(End.FAILED, 0.0, 0.0, reason=Reason.JOB)
    with pytest.raises(ValueError, match="failed runs, and only they, have one"):
        Outcome(End.FAILED, 0.0, 0.0)
    with pytest.raises(ValueError, match="failed runs, and only they, have one"):
        Outcome(End.CAPPED, 1.0, 0.0, reason=Reason.OOM)


def test_who_is_to_blame() -> None:
    assert {reason for reason in Reason if reason.blames_configuration} == {Reason.OOM, Reason.JOB}


@pytest.mark.parametrize(
    "value",
    [
        Plan(3, why="tested"),
        Order(0, 3, 10.0, 0.1, Plan(3, why="tested")),
        Outcome(End.FINISHED, 1.0, 0.1),
        Told(1.0),
    ],
)
def test_facts_cannot_be_changed(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 7)


def test_defaults_share_nothing_that_can_change() -> None:
    with pytest.raises(TypeError):
        Outcome(End.FINISHED, 1.0, 0.1).metrics["accuracy"] = 1.0  # type: ignore[index]


def test_what_was_told_stands_beside_the_fact() -> None:
    order = Order(0, 3, 10.0, 0.1, Plan(3, why="tested"))
    seen = Observation(order, Outcome(End.CAPPED, 10.0, 0.1), Told(25.0, censored=True, bound_s=10.0))
    assert (seen.row, seen.outcome.seconds, seen.told.seconds if seen.told else None) == (3, 10.0, 25.0)
