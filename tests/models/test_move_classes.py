"""Classes of moves (Scout): the fitted chances against how often moves of that kind were improvements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.move_classes import MoveClasses
from lynceus.models.past_pairs import PastPairs
from lynceus.models.state import State, feasible_runs
from lynceus.policy.planners.moves import LikeliestMove, UnlikelyMove
from past_jobs import JOB, past, resources, seen


def test_chances_are_those_of_the_past() -> None:
    """Jobs that scale with cores in proportion to a load: of moves to twice the cores, P(at most r times as long) is counted."""
    model = MoveClasses(past(jobs=200, noise=0.3), pull=0.01, pairs=12, members=3)
    start, busy = 0, 0.9
    gain = np.exp(-busy * (resources()[:, 0] - resources()[start, 0]))
    for factor, expected in ((1.6, 0.9), (1 / 1.6, 0.1)):
        chance = model.chance(seen([start], busy), start, gain * factor)
        others = np.arange(len(gain)) != start
        np.testing.assert_allclose(chance[others], expected, atol=0.15)


def test_chances_grow_with_the_ratio_and_lie_between_0_and_1() -> None:
    model = MoveClasses(past(), members=3)
    state = seen([0, 5], 0.5)
    chances = [model.chance(state, 5, np.full(len(resources()), ratio)) for ratio in (0.0, 0.5, 1.0, 2.0, np.inf)]
    assert (np.diff(chances, axis=0) >= 0).all()
    assert (chances[0] < 1e-3).all()
    assert (chances[-1] == 1).all()
    assert [chance[5] for chance in chances] == [0, 0, 1, 1, 1]


def test_the_likeliest_move_starts_from_the_best_run() -> None:
    model = MoveClasses(past(), members=3)
    state = seen([0, 5], 0.9)
    plan = LikeliestMove()(state, model, 0)
    assert plan is not None
    assert state.open[plan.row]
    runs = feasible_runs(JOB.problem, state.observations)
    best = min(runs, key=lambda run: run[1])[0] if runs else min((0, 5), key=lambda row: JOB.measured.seconds[row])
    limit = state.timeout_s_of(np.arange(len(state.open)))
    chance = model.chance(state, best, limit / JOB.measured.seconds[best])
    assert plan.score == pytest.approx(chance[state.open].max())
    assert LikeliestMove()(State.present(JOB.problem, ()), model, 0) is None
    with pytest.raises(ValueError, match="move-classes"):
        LikeliestMove()(state, PastPairs(), 0)


def test_it_stops_when_no_move_is_likely() -> None:
    model = MoveClasses(past(), members=3)
    state = seen([0, 5, 7], 0.9)
    plan = LikeliestMove()(state, model, 0)
    assert plan is not None
    assert UnlikelyMove(probability=0.0)(state, plan) is None
    reason = UnlikelyMove(probability=0.9)(state, replace(plan, score=0.1))
    assert reason is not None
    assert "10%, below 90%" in reason
    assert UnlikelyMove(probability=0.9)(seen([0], 0.9), replace(plan, score=0.1)) is None, "too early"
