"""One number per seed: what is first reached, what is settled, and what is recommended along the way."""

import math
from dataclasses import replace

import pytest

from lynceus.fraction import Fraction
from lynceus.lab.measures import settled, value_of
from lynceus.policy import preset
from lynceus.replay import Replay, ReplayJob, Step, optimum, replay
from shares import small_share_job


def course(*cno: float, advised: bool = True) -> Replay:
    """A replay whose every run costs a dollar."""
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
def test_settled_is_where_it_stays(cno, usd):
    assert settled(course(*cno), 1.05) == usd


def test_first_reached_may_be_long_before_settled():
    lucky = course(1.0, math.inf, 1.3, 1.01)
    assert value_of(None, lucky, "money", 1.05) == 1.0
    assert value_of(None, lucky, "settled", 1.05) == 4.0


def test_broken_counts_recommendations_only():
    assert value_of(None, course(math.inf, 1.0, math.inf, 1.1), "broken", 1.1) == 0.5
    assert math.isnan(value_of(None, course(math.inf, 1.0, advised=False), "broken", 1.1))


@pytest.mark.parametrize("name", ["trimtuner", "eic-full"])
def test_a_policy_that_predicts_is_judged_by_what_it_would_recommend(name):
    small = small_share_job()
    problem = small.problem.with_fraction(Fraction("share", "all", "full"))
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
    assert all(problem.share[step.advised] == 1 for step in known), "samples are run, all data is the answer"
    assert all(math.isinf(step.cno) for step in steps if step.advised < 0)
    for step in known:
        value = problem.answer_value(
            step.advised,
            float(small.measured.seconds[step.advised]),
            {"accuracy": float(small.measured.metrics["accuracy"][step.advised])},
        )
        assert step.cno == (math.inf if value is None else best.cno(value))


def _short(job: ReplayJob, name: str) -> tuple[Step, ...]:
    from lynceus.lab.cell import limited

    return replay(limited(job, 12), preset(name), 1, until="end").steps


def test_regret_adds_what_a_hundred_runs_cost_too_much(priced):
    optimum_usd = priced.optimum.cost_usd
    assert value_of(priced, replace(course(1.5, 1.2), cno_at_stop=1.2), "regret", 0.0) == pytest.approx(
        2.0 + 100 * 0.2 * optimum_usd
    )
    assert value_of(priced, course(1.5, 1.0), "regret", 0.0) == 2.0, "the optimum was run: nothing is too dear"
    assert math.isinf(value_of(priced, replace(course(math.inf), cno_at_stop=math.inf), "regret", 0.0))


def test_a_replay_that_ended_at_its_goal_is_as_far_away_as_its_last_run(priced):
    near = course(1.5, 1.09)
    assert value_of(priced, near, "dfo", 0.0) == pytest.approx(0.09)
    assert value_of(priced, near, "violations", 0.0) == 0.0
    assert value_of(priced, near, "regret", 0.0) == pytest.approx(2.0 + 100 * 0.09 * priced.optimum.cost_usd)
    assert math.isinf(value_of(priced, course(), "dfo", 0.0))
    assert value_of(priced, replace(near, cno_at_stop=math.inf), "violations", 0.0) == 1.0


def test_distance_is_read_where_the_money_is(priced):
    mean_usd = float(priced.problem.tariff.charges(priced.measurements.seconds, priced.problem.price).mean())
    path = course(math.inf, 1.5, 1.0)
    assert value_of(priced, path, "distance", 2.0 / mean_usd) == pytest.approx(0.5)
    assert math.isinf(value_of(priced, path, "distance", 1.9 / mean_usd))
    assert value_of(priced, path, "distance", 99.0 / mean_usd) == 0.01, "nearer than anybody cares"


@pytest.fixture
def priced() -> ReplayJob:
    small = small_share_job()
    best = optimum(small.problem, small.measured)
    assert best is not None
    return ReplayJob("shares", small.problem, small.measured, best)
