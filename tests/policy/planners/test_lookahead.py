"""Settings of the look-ahead, and the plans it makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lookahead_cases import JOBS, SEED, Generic, planned, state_of
from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.distribution import Normal
from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.planners.lookahead import _PREDICTIONS_PER_S, Lookahead
from lynceus.policy.planners.shortlist import LocalSearch, RandomRows, TopRows
from lynceus.policy.presets import preset
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome


@pytest.mark.parametrize("shortlist", [TopRows(24), RandomRows(24), LocalSearch(24), TopRows(1000)])
def test_a_shortlist_of_all_rows_changes_nothing(shortlist: TopRows | RandomRows | LocalSearch) -> None:
    state = state_of(JOBS["deadline"])
    lookahead = Lookahead(ConstrainedImprovement(), depth=1)
    whole = planned(lookahead, state, Trees())
    assert planned(replace(lookahead, shortlist=shortlist), state, Trees()) == whole


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("surrogate", [Trees(), Generic(Trees())], ids=["kernel", "generic"])
def test_the_imagined_budget_may_be_used_up(surrogate: Surrogate, depth: int) -> None:
    """No outcome leaves budget for a second run: the path ends after the first one."""
    job = JOBS["deadline"]
    state = replace(state_of(job), left=np.array([1e-6]))
    free = Lookahead(ConstrainedImprovement(), confidence=0.0)
    plan = planned(replace(free, depth=depth), state, surrogate)
    assert plan.path == ()
    assert plan.score == pytest.approx(planned(free, state, surrogate).score)


def test_without_an_affordable_row_there_is_no_plan() -> None:
    state = replace(state_of(JOBS["deadline"]), left=np.array([1e-6]))
    assert Lookahead(ConstrainedImprovement(), depth=1)(state, Trees(), SEED) is None


def test_confidence_zero_does_not_test_the_budget() -> None:
    state = replace(state_of(JOBS["deadline"]), left=np.array([0.3]))
    for surrogate in (Trees(), Generic(Trees())):
        untested = planned(Lookahead(ConstrainedImprovement(), depth=1, confidence=0.0), state, surrogate)
        assert str(int(state.open.sum())) in untested.why
        assert untested.score == pytest.approx(
            planned(Lookahead(ConstrainedImprovement(), depth=1, confidence=0.0), state, Trees()).score, rel=1e-9
        )


def test_discount_zero_is_no_look_ahead() -> None:
    state = state_of(JOBS["deadline"])
    near = planned(Lookahead(ConstrainedImprovement()), state, Trees())
    far = planned(Lookahead(ConstrainedImprovement(), depth=2, discount=0.0), state, Trees())
    assert (far.row, far.score) == (near.row, near.score)


def test_a_plan_keeps_the_predictions_of_its_row() -> None:
    state = state_of(JOBS["deadline"])
    lookahead = Lookahead(ConstrainedImprovement(), depth=1)
    plan = planned(lookahead, state, Trees())
    prediction = Trees()(state, SEED)
    gain = ConstrainedImprovement()(prediction, state)[0]
    assert plan.gain == gain[plan.row]
    assert plan.best_gain == gain[state.open].max()
    assert plan.best_rate == pytest.approx((gain / prediction.mean[0, :, 0])[state.open].max())
    assert plan.usd == pytest.approx(prediction.mean[0, plan.row, 0])
    assert plan.probability == pytest.approx(
        Normal(prediction.mean[0, plan.row, 0], prediction.std[0, plan.row, 0]).cdf(
            1800.0 * state.problem.price[plan.row]
        )
    )
    assert plan.expected == prediction.expected(plan.row)
    assert plan.stoppable
    assert ", 1 ahead, best of 16 affordable" in plan.why
    assert len(plan.path) == 1
    assert state.open[plan.path[0]]
    assert plan.path[0] != plan.row


def test_an_allowance_of_time_shortens_the_look_ahead_and_then_drops_it() -> None:
    """Three outcomes of 24 rows: what a row costs, and so from how many rows the time allows to look ahead."""
    state = state_of(JOBS["deadline"])
    far = Lookahead(ConstrainedImprovement(), depth=1)
    each_s = 3 * len(state.open) / _PREDICTIONS_PER_S
    whole, near = planned(far, state, Trees()), planned(replace(far, depth=0), state, Trees())
    assert planned(replace(far, allowance_s=24 * each_s), state, Trees()) == whole
    some = planned(replace(far, allowance_s=5.5 * each_s), state, Trees())
    assert some == planned(replace(far, shortlist=TopRows(5)), state, Trees())
    assert ", 1 ahead" in some.why
    assert planned(replace(far, allowance_s=3.5 * each_s), state, Trees()) == near
    assert planned(replace(far, depth=2, allowance_s=5.5 * each_s), state, Trees()) == near, (
        "two runs ahead take 4 × as long"
    )


def test_before_the_first_result_the_cheapest_row_is_chosen() -> None:
    problem = JOBS["deadline"].problem
    plan = planned(Lookahead(ConstrainedImprovement(), depth=2), State.present(problem, ()), Trees())
    assert problem.price[plan.row] == problem.price.min()


def test_after_failures_without_results_a_random_row_is_chosen() -> None:
    problem = JOBS["deadline"].problem
    failed = Observation(
        Order(0, 0, 600.0, 1.0, Plan(0, why="cheap")), Outcome(End.FAILED, 1.0, 0.01, reason=FailureReason.OOM), None
    )
    plan = planned(Lookahead(ConstrainedImprovement(), depth=2), State.present(problem, (failed,)), Trees())
    assert plan.why == "random, one of 23 left"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"depth": -1}, "look-ahead depth -1 is negative"),
        ({"discount": 1.5}, r"discount 1.5 must lie in \[0, 1\]"),
        ({"confidence": 1.0}, r"confidence 1.0 in \[0, 1\)"),
        ({"allowance_s": -1.0}, "allowance_s -1.0 must not be negative"),
    ],
)
def test_invalid_settings_are_errors(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Lookahead(ConstrainedImprovement(), **wrong)  # type: ignore[arg-type]


def test_a_planner_without_a_model_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a surrogate"):
        Lookahead(ConstrainedImprovement())(state_of(JOBS["deadline"]), None, SEED)


def test_every_preset_with_a_planner_can_look_two_ahead() -> None:
    job = JOBS["two metrics"]
    for name in ("lynceus-2020", "authors-2020", "obol", "bo"):
        policy = preset(name, 2)
        assert policy.choose(state_of(job, 12), policy.surrogate, SEED) is not None
