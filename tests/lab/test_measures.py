"""One number per seed: money until a level is reached or kept, and recommendations on the way."""

import math
from dataclasses import replace

import pytest

from lynceus.policy.presets import preset
from lynceus.problem.data_fraction import Fraction, row_shares
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay, Step, replay
from lynceus.replay.score import optimum
from lynceus_lab.measures import settled, value_of
from shares import small_share_job


def replayed(*cno: float, advised: bool = True) -> Replay:
    """A replay in which every run costs a dollar."""
    steps = [
        Step({}, "COMPLETE", 1.0, float(number), ratio, 0.0, advised=7 if advised else -1)
        for number, ratio in enumerate(cno, start=1)
    ]
    return Replay("mine", 0, tuple(steps), "the end", None)


@pytest.mark.parametrize(
    ("cno", "usd"),
    [
        ((math.inf, 1.0, 1.0), 2.0),
        ((1.0, math.inf, 1.02, 1.0), 3.0),
        ((1.0, 1.0, 1.2), math.inf),
        ((math.inf, math.inf), math.inf),
        ((1.05, 1.04), 1.0),
    ],
)
def test_settled_is_reached_for_good(cno, usd):
    assert settled(replayed(*cno), 1.05) == usd


def test_first_reached_may_be_long_before_settled():
    early = replayed(1.0, math.inf, 1.3, 1.01)
    assert value_of(None, early, "money", 1.05) == 1.0
    assert value_of(None, early, "settled", 1.05) == 4.0


def test_broken_counts_recommendations_only():
    assert value_of(None, replayed(math.inf, 1.0, math.inf, 1.1), "broken", 1.1) == 0.5
    assert math.isnan(value_of(None, replayed(math.inf, 1.0, advised=False), "broken", 1.1))


@pytest.mark.parametrize("name", ["trimtuner", "eic-full"])
def test_a_policy_that_recommends_predictions_is_scored_by_its_recommendation(name):
    small = small_share_job()
    problem = Fraction("share", "all", "full").apply(small.problem)
    best = optimum(problem, small.measured)
    assert best is not None
    job = ReplayJob("shares", problem, small.measured, best)
    steps = _short(job, name)
    advised = [step.advised for step in steps]
    if name == "eic-full":
        assert set(advised) == {-1}, "it recommends its best run"
        return
    known = [step for step in steps if step.advised >= 0]
    assert known
    assert all(row_shares(problem)[step.advised] == 1 for step in known), "only all data may be recommended"
    assert all(math.isinf(step.cno) for step in steps if step.advised < 0)
    for step in known:
        value = problem.answer_value(
            step.advised,
            float(small.measured.seconds[step.advised]),
            {"accuracy": float(small.measured.metrics["accuracy"][step.advised])},
        )
        assert step.cno == (math.inf if value is None else best.cno(value))


def _short(job: ReplayJob, name: str) -> tuple[Step, ...]:
    from lynceus_lab.cell import limited

    return replay(limited(job, 12), preset(name), 1, until="end").steps


def test_regret_adds_the_excess_cost_of_a_hundred_runs(priced):
    optimum_usd = priced.optimum.cost_usd
    assert value_of(priced, replace(replayed(1.5, 1.2), cno_at_stop=1.2), "regret", 0.0) == pytest.approx(
        2.0 + 100 * 0.2 * optimum_usd
    )
    assert value_of(priced, replayed(1.5, 1.0), "regret", 0.0) == 2.0, "the optimum was run: no excess cost"
    assert math.isinf(value_of(priced, replace(replayed(math.inf), cno_at_stop=math.inf), "regret", 0.0))


def test_a_replay_that_ended_at_its_target_has_the_distance_of_its_last_run(priced):
    near = replayed(1.5, 1.09)
    assert value_of(priced, near, "dfo", 0.0) == pytest.approx(0.09)
    assert value_of(priced, near, "violations", 0.0) == 0.0
    assert value_of(priced, near, "regret", 0.0) == pytest.approx(2.0 + 100 * 0.09 * priced.optimum.cost_usd)
    assert math.isinf(value_of(priced, replayed(), "dfo", 0.0))
    assert value_of(priced, replace(near, cno_at_stop=math.inf), "violations", 0.0) == 1.0


def test_distance_after_an_amount_of_money(priced):
    mean_usd = float(priced.problem.billing.charges(priced.measurements.seconds, priced.problem.price).mean())
    path = replayed(math.inf, 1.5, 1.0)
    assert value_of(priced, path, "distance", 2.0 / mean_usd) == pytest.approx(0.5)
    assert math.isinf(value_of(priced, path, "distance", 1.9 / mean_usd))
    assert value_of(priced, path, "distance", 99.0 / mean_usd) == 0.01, "the smallest distance"


@pytest.fixture
def priced() -> ReplayJob:
    small = small_share_job()
    best = optimum(small.problem, small.measured)
    assert best is not None
    return ReplayJob("shares", small.problem, small.measured, best)
