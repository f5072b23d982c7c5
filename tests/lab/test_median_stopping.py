"""Vizier's median stopping rule: it compares a run with earlier ones at the same tick, and reads nothing after the stop."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.presets import preset
from lynceus.policy.timeouts.by_name import timeout_named
from lynceus.testing.job import small_job
from lynceus.trial.order import Plan
from lynceus_lab.median_stopping import VIZIER_TIMEOUT, MedianStopping, watching

JOB = small_job()


def seen(*traces: tuple[float, ...]) -> State:
    """Finished runs with the given progress at ticks of 30 s."""
    found = []
    for number, progress in enumerate(traces):
        one = JOB.observation(number, number)
        trace = tuple((30.0 * (tick + 1), value) for tick, value in enumerate(progress))
        found.append(replace(one, outcome=replace(one.outcome, trace=trace)))
    return State.present(JOB.problem, tuple(found))


def rule(*own: float, row: int = 10) -> MedianStopping:
    recorded = [(0.0,)] * 24
    recorded[row] = own
    return MedianStopping(recorded=tuple(recorded))


def test_a_run_is_stopped_at_the_first_tick_at_which_it_is_below_the_median() -> None:
    state = seen((0.2, 0.4, 0.8), (0.1, 0.2, 0.3), (0.3, 0.6, 0.9))
    # Means up to each tick: 0.2, 0.3, 0.467 is the run in the middle.
    plan = Plan(10, why="tested")
    assert rule(0.25, 0.28, 0.9)(state, plan) == 60.0
    assert rule(0.1, 0.9, 0.9)(state, plan) == 30.0
    assert rule(0.25, 0.35, 0.5)(state, plan) == math.inf
    assert rule(0.25, 0.35, 0.3)(state, plan) == 90.0, "its best progress, 0.35, is below 0.467"


def test_what_a_run_does_after_the_stop_changes_nothing() -> None:
    state, plan = seen((0.5, 0.6), (0.4, 0.6)), Plan(10, why="tested")
    assert rule(0.1, 0.1)(state, plan) == rule(0.1, 0.99, 0.99)(state, plan) == 30.0


def test_the_design_and_the_first_run_finish() -> None:
    plan = Plan(10, why="tested")
    assert rule(0.0)(seen(), plan) == math.inf
    assert rule(0.0)(seen((0.5,)), replace(plan, stoppable=False)) == math.inf


def test_it_is_for_replays_only() -> None:
    assert timeout_named("vizier") == VIZIER_TIMEOUT
    policy = preset("lynceus-2020", lookahead=0, timeout="vizier")
    with pytest.raises(InputError, match="progress of the replayed table"):
        policy.timeout.rule(seen((0.5,)), Plan(3, why="tested"))
    assert watching(preset("bo"), None) == preset("bo")  # type: ignore[arg-type]
