"""Which job of a fleet gets the next trial."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import lynceus
from lynceus.policy.fleet_turn import Turn, expected_saving, next_turn, trial_scale
from lynceus.trial.order import Order, Plan, Purpose

SPACE = lynceus.Space.build([lynceus.Integer("n", 1, 3)], price="3.6 * n")


def order(gain: float = math.nan, usd: float = math.nan, purpose: Purpose = Purpose.SEARCH) -> Order:
    return Order(0, 0, math.inf, 0.0, Plan(0, "test", gain=gain, usd=usd, purpose=purpose))


def turn(job: int, saving: float, *, spent: float = 0.0, trial: float = 1.0, trials: int = 1) -> Turn:
    return Turn(job, order(), saving, spent, trial, trials)


def test_money_goes_where_it_saves_most() -> None:
    found = next_turn([turn(0, 3.0), turn(1, 8.0), turn(2, 5.0)])
    assert found is not None
    assert found.job == 1
    assert next_turn([]) is None


def test_saving_counts_future_runs() -> None:
    problem = lynceus.Problem(SPACE)
    assert expected_saving(problem, order(0.02, 0.5), 100.0, 1.0) == pytest.approx(4.0)
    assert expected_saving(problem, order(0.02, 0.5), 1000.0, 1.0) == pytest.approx(40.0)
    assert math.isnan(expected_saving(problem, order(), 100.0, None))
    assert expected_saving(problem, order(purpose=Purpose.CONFIRM), 100.0, 1.0) == 0.0
    faster = lynceus.Problem(SPACE, lynceus.Objective.parse("time"))
    assert expected_saving(faster, order(30.0, 0.5), 100.0, 600.0) == pytest.approx(5.0)


def test_a_job_of_which_nothing_is_known_comes_first() -> None:
    found = next_turn([turn(0, 50.0), replace(turn(1, math.nan, trials=0), family="another")])
    assert found is not None
    assert found.job == 1


def test_an_expensive_job_waits_for_a_cheaper_relative_that_still_learns() -> None:
    expensive = turn(1, math.nan, trial=10.0, trials=0)
    for cheap, first in (
        (turn(0, 5.0, trial=1.0), 0),
        (turn(0, 0.5, trial=1.0), 1),  # it has learnt what it can
        (turn(0, 5.0, trial=1.0, spent=41.0), 1),  # teaching has cost as much as four trials
        (turn(0, 5.0, trial=11.0), 1),  # not cheaper
        (replace(turn(0, 5.0, trial=1.0), family="another"), 1),  # no relative
    ):
        found = next_turn([cheap, expensive])
        assert found is not None
        assert found.job == first


def test_a_fleet_never_stands_still() -> None:
    """Whatever waits for whatever: the cheapest job waits for none."""
    turns = [turn(job, math.nan, trial=10.0**job, trials=0) for job in range(5)]
    found = next_turn(turns)
    assert found is not None
    assert found.job == 0


def test_the_scale_of_a_trial_is_known_before_any_ran() -> None:
    problem = lynceus.Problem(SPACE, constraints=(lynceus.Constraint.parse("runtime <= 1000s"),))
    assert trial_scale(problem) == pytest.approx(2.0)
    assert trial_scale(lynceus.Problem(SPACE)) == pytest.approx(7.2)
