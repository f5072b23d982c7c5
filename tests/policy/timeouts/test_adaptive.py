"""Checks that become denser where a stop is likely."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.models.state import State
from lynceus.policy.timeouts.adaptive import AdaptiveTimeout
from lynceus.policy.timeouts.rules import IncumbentTimeout
from lynceus.testing.job import small_job
from lynceus.trial.order import Expected, Plan

JOB = small_job()
STATE = State.present(JOB.problem, JOB.finished(range(6)))


def plan(seconds: float, spread: float = 0.1, row: int = 9) -> Plan:
    return Plan(row, why="test", stoppable=True, expected=Expected("log time", (math.log(seconds),), (spread,)))


@settings(max_examples=60, deadline=None)
@given(st.floats(1.0, 1e5), st.floats(0.01, 3.0), st.integers(6, 20))
def test_the_stop_is_never_before_the_limit_and_at_most_one_interval_after_it(
    seconds: float, spread: float, row: int
) -> None:
    rule = AdaptiveTimeout(every_s=30.0, least_s=1.0)
    limit = IncumbentTimeout()(STATE, plan(seconds, spread, row))
    stop = rule(STATE, plan(seconds, spread, row))
    assert limit * (1 - 1e-6) <= stop <= limit + 30.0
    gaps = np.diff([0.0, *rule.checks(STATE, plan(seconds, spread, row), limit)])
    assert (gaps >= 1.0 - 1e-9).all()
    assert (gaps <= 30.0 + 1e-9).all()


def test_a_run_that_is_expected_to_be_late_is_checked_more_often() -> None:
    rule = AdaptiveTimeout()
    limit = 300.0
    often, seldom = (len(rule.checks(STATE, plan(seconds), limit)) for seconds in (3000.0, 3.0))
    assert often == 300
    assert seldom <= often
    short = rule.checks(STATE, plan(100.0, 0.2), limit)
    assert short[0] == pytest.approx(30.0)
    assert np.diff(short)[-1] < 29.0, "a run that outlives its prediction becomes suspicious"


def test_without_a_prediction_it_checks_at_equal_intervals() -> None:
    unknown = replace(plan(100.0), expected=None)
    assert AdaptiveTimeout().checks(STATE, unknown, 100.0) == [30.0, 60.0, 90.0, 120.0]
    assert AdaptiveTimeout()(STATE, replace(unknown, stoppable=False)) == math.inf


def test_intervals_must_make_sense() -> None:
    with pytest.raises(ValueError, match="least_s above 0"):
        AdaptiveTimeout(every_s=1.0, least_s=2.0)
