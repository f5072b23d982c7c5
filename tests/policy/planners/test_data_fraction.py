"""Choosers for data fractions, the information planner, and imagined outcomes of several targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.entropy_search import ConstrainedIncumbent, EntropySearch
from lynceus.models.fabolas import Fabolas
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.joint_trees import JointTrees
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.answer import BestPredicted
from lynceus.policy.designs import Amount
from lynceus.policy.planners.data_fraction import AtEveryShare, CheckAnswer, OnShares
from lynceus.policy.planners.information import InformationPlanner
from lynceus.policy.planners.outcomes import GaussHermite, imagine
from lynceus.policy.planners.promising import Promising
from lynceus.policy.planners.shortlist import TopRows, TopShare
from lynceus.policy.planners.simple import Uniform
from lynceus.problem.data_fraction import Fraction, configurations, row_shares
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.testing.choosers import check_chooser
from lynceus.testing.job import SmallJob
from lynceus.testing.surrogates import check_surrogate
from shares import small_share_job

BOTH = (EntropySearch(draws=256), ConstrainedIncumbent())


def declared(test: str = "samples", answer: str = "full", **changes: object) -> tuple[SmallJob, Problem]:
    job = small_share_job(**changes)  # type: ignore[arg-type]
    return job, Fraction("share", test, answer).apply(job.problem)  # type: ignore[arg-type]


def rows_of(design: AtEveryShare, job: SmallJob, problem: Problem) -> list[int]:
    rows: list[int] = []
    while (plan := design(State.present(problem, job.finished(rows)), None, 5)) is not None:
        assert not plan.stoppable
        rows.append(plan.row)
    return rows


def test_a_design_runs_every_fraction_of_its_configurations() -> None:
    job, problem = declared()
    rows = rows_of(AtEveryShare(Amount(count=3)), job, problem)
    group = configurations(problem.space, "share")
    assert len(rows) == 6, "three configurations on two samples"
    assert [row_shares(problem)[row] for row in rows] == [0.05, 0.2] * 3
    assert len({group[row] for row in rows}) == 3
    smallest = rows_of(AtEveryShare(Amount(count=3), shares=1), job, problem)
    assert smallest == rows[::2]


def test_a_design_counts_configurations_and_not_runs() -> None:
    job, problem = declared("all", "any")
    # 3 % of 12 configurations are fewer than the parameters of the space, which is the minimum.
    assert len(rows_of(AtEveryShare(), job, problem)) == 4 * 3
    with pytest.raises(ValueError, match="shares is 0"):
        AtEveryShare(shares=0)


def test_a_design_without_a_fraction_is_a_latin_hypercube() -> None:
    job = small_share_job()
    rows = rows_of(AtEveryShare(Amount(count=5)), job, job.problem)
    assert len(rows) == len(set(rows)) == 5


def test_a_design_ends_with_its_budget() -> None:
    job, problem = declared()
    assert len(rows_of(AtEveryShare(Amount(usd=0.05)), job, problem)) < len(
        rows_of(AtEveryShare(Amount(usd=5.0)), job, problem)
    )


@pytest.mark.parametrize(("which", "shares"), [("samples", {0.05, 0.2}), ("full", {1.0})])
def test_only_these_fractions_are_chosen(which: str, shares: set[float]) -> None:
    job, problem = declared("all", "full")
    chooser, rows = OnShares(which, Uniform()), []  # type: ignore[arg-type, var-annotated]
    while (plan := chooser(State.present(problem, job.finished(rows)), None, 2)) is not None:
        rows.append(plan.row)
    assert {float(row_shares(problem)[row]) for row in rows} == shares
    assert len(rows) == sum(bool(share in shares) for share in row_shares(problem))


def test_without_samples_there_is_no_restriction() -> None:
    job = small_share_job()
    assert OnShares("samples", Uniform())(State.present(job.problem, ()), None, 0) is not None


@pytest.mark.parametrize("surrogate", [Fabolas(), JointTrees()], ids=lambda one: type(one).__name__)
def test_the_planner_and_its_surrogates_meet_their_contracts(surrogate: Fabolas | JointTrees) -> None:
    check_chooser(InformationPlanner(BOTH), surrogate)
    check_surrogate(surrogate, tolerance=1e-6)


@pytest.mark.parametrize("surrogate", [Fabolas(), JointTrees()], ids=lambda one: type(one).__name__)
def test_the_planner_tests_samples_and_keeps_its_prediction(surrogate: Fabolas | JointTrees) -> None:
    job, problem = declared()
    observations = job.finished([row for row in job.order_of_runs if row_shares(problem)[row] < 1][:6])
    state = State.present(problem, observations)
    plan = InformationPlanner(BOTH)(state, surrogate, 0)
    assert plan is not None
    assert row_shares(problem)[plan.row] < 1
    assert plan.expected is not None
    assert plan.usd > 0
    assert "about all data" in plan.why
    shorter = InformationPlanner(BOTH, shortlist=TopShare(0.2, least=2))(state, surrogate, 0)
    assert shorter is not None
    assert "best of 4 compared" in shorter.why, "18 rows are open"


def test_the_planner_respects_the_remaining_budget() -> None:
    job, problem = declared()
    observations = job.finished([0, 3, 6, 9])
    scarce = replace(State.present(problem, observations), left=np.array([0.001]))
    assert InformationPlanner(BOTH)(scarce, Fabolas(), 0) is None
    assert InformationPlanner(BOTH, confidence=0.0)(scarce, Fabolas(), 0) is not None


def test_overhead_makes_cheap_runs_less_attractive() -> None:
    job, problem = declared()
    state = State.present(problem, job.finished([0, 3, 6, 9]))
    cheap, expensive = (InformationPlanner(BOTH, overhead=usd)(state, Fabolas(), 0) for usd in (0.0, 100.0))
    assert cheap is not None
    assert expensive is not None
    assert cheap.usd <= expensive.usd


def test_the_planner_needs_joint_predictions() -> None:
    job, problem = declared()
    with pytest.raises(ValueError, match="needs a surrogate with joint predictions"):
        InformationPlanner(BOTH)(State.present(problem, job.finished([0])), GaussianProcess(), 0)


def test_without_training_targets_the_planner_chooses_at_random() -> None:
    job, problem = declared()
    lost = tuple(replace(seen, target=None) for seen in job.finished([0, 3]))
    plan = InformationPlanner(BOTH)(State.present(problem, lost), Fabolas(), 0)
    assert plan is not None
    assert plan.why.startswith("random")


def test_promising_restricts_to_rows_with_feasible_means() -> None:
    job = small_share_job("accuracy >= 0.9", "cost <= $0.30", objective="cost")
    state = State.present(Fraction("share").apply(job.problem), job.finished(range(0, 36, 2)))
    surrogate = Trees(trees=5)
    prediction = surrogate(state, 4)
    feasible = (prediction.mean[0, :, 0] <= 0.3) & (prediction.mean[0, :, 1] >= 0.9)
    chosen = {Promising(Uniform())(state, surrogate, 4).row}  # type: ignore[union-attr]
    assert all(feasible[row] and state.open[row] for row in chosen)
    strict = replace(state, problem=state.problem.with_constraints((Constraint.parse("accuracy >= 0.999"),)))
    assert Promising(Uniform())(strict, surrogate, 4) is None
    with pytest.raises(ValueError, match="this policy has none"):
        Promising(Uniform())(state, None, 0)


def test_top_share() -> None:
    _, problem = declared()
    state = State.present(problem, ())
    score, candidates = np.arange(36.0), np.ones(36, dtype=bool)
    np.testing.assert_array_equal(TopShare(0.25)(state, score, candidates, 0), TopRows(9)(state, score, candidates, 0))
    assert len(TopShare(0.01, least=3)(state, score, candidates, 0)) == 3
    with pytest.raises(ValueError, match=r"share 0\.0 must lie in"):
        TopShare(0.0)


def test_the_product_rule_agrees_with_monte_carlo() -> None:
    """Cost × accuracy: weights sum to 1 and smooth functions of both have the mean of a million draws."""
    mean, std = np.array([[2.0, 0.8]]), np.array([[0.4, 0.05]])
    nodes, weights = GaussHermite(5)(mean, std)
    assert nodes.shape == (1, 25, 2)
    assert weights.sum() == pytest.approx(1.0)
    draws = np.random.default_rng(0).normal(mean[0], std[0], (1_000_000, 2))
    for function in (
        lambda cost, accuracy: cost * accuracy**2,
        lambda cost, accuracy: np.exp(-cost) * np.sin(5 * accuracy),
        lambda cost, accuracy: np.log1p(cost) / accuracy,
    ):
        expected = float(weights @ function(nodes[0, :, 0], nodes[0, :, 1]))
        assert expected == pytest.approx(float(function(draws[:, 0], draws[:, 1]).mean()), rel=2e-3)


def test_imagined_outcomes_are_feasible_only_within_both_constraints() -> None:
    job = small_share_job("accuracy >= 0.9", "cost <= $0.30", objective="cost")
    state = State.present(Fraction("share").apply(job.problem), job.finished([0, 1]))
    mean, std = np.array([[0.28, 0.9]]), np.array([[0.02, 0.03]])
    found = imagine(state, "cost", np.array([5]), (mean, std), GaussHermite(3), capped=False)
    cost, accuracy = found.target[0, :, 0], found.target[0, :, 1]
    feasible = (accuracy >= 0.9) & (cost <= 0.3 + 1e-12)
    np.testing.assert_array_equal(~np.isnan(found.value[0]), feasible)
    assert 0 < feasible.sum() < 9
    assert found.weight[0] @ cost == pytest.approx(0.28)


def test_the_recommendation_is_checked_on_all_data_once() -> None:
    job, problem = declared("all", "full")
    check = CheckAnswer(every=4)
    samples = np.flatnonzero(row_shares(problem) < 1)[:12].tolist()
    model = Fabolas(care=1)
    assert check(State.present(problem, job.finished(samples[:3])), model, 0) is None, "too early"
    state = State.present(problem, job.finished(samples))
    plan = check(state, model, 0)
    assert plan is not None
    assert plan.row == check.answer(state, model, 0)
    assert row_shares(problem)[plan.row] == 1.0
    after = State.present(problem, job.finished([*samples, plan.row]))
    assert check(after, model, 0) is None, "the last check was just now"
    later = State.present(problem, job.finished([plan.row, *samples]))
    again = check(later, model, 0)
    assert again is None or again.row != plan.row, "a configuration is checked once"


def test_once_the_answer_has_run_a_likely_better_row_is_checked() -> None:
    """One check that misses the limit makes the model unsure of all rows, so that none is an answer; checks go on all the same."""
    job, problem = declared("all", "full")
    full = row_shares(problem) == 1.0
    samples = np.flatnonzero(~full)[:12].tolist()
    poor = min(np.flatnonzero(full).tolist(), key=lambda row: job.measured.metrics["accuracy"][row])
    state = State.present(problem, job.finished([poor, *samples]))
    model, nobody = Fabolas(care=1), BestPredicted(confidence=1.1)
    assert nobody(state, model, 0) is None
    plan = CheckAnswer(every=4, answer=nobody)(state, model, 0)
    prediction = model(state, 0)
    assert plan is not None
    assert plan.row != poor
    assert full[plan.row]
    assert prediction.feasible(problem)[0][plan.row] >= 0.5
    likely = full & state.open & (prediction.feasible(problem)[0] >= 0.5)
    assert plan.row == min(np.flatnonzero(likely), key=lambda row: prediction.objective(problem)[0][row])
    assert CheckAnswer(every=4, answer=nobody, likely=1.0)(state, model, 0) is None
    unchecked = State.present(problem, job.finished(samples))
    assert CheckAnswer(every=4, answer=nobody)(unchecked, model, 0) is None, "the first check is one of an answer"


def test_a_check_that_cannot_win_is_not_made() -> None:
    job, problem = declared("all", "full")
    full = row_shares(problem) == 1.0
    samples = np.flatnonzero(~full)[:12].tolist()
    model, check = Fabolas(care=1), CheckAnswer(every=4, answer=BestPredicted(confidence=1.1))
    accuracy = job.measured.metrics["accuracy"]
    kept = [row for row in np.flatnonzero(full).tolist() if job.measured.seconds[row] <= 300]
    best = max(kept, key=lambda row: accuracy[row])
    state = State.present(problem, job.finished([best, *samples]))
    value = model(state, 0).objective(problem)[0][full & state.open]
    assert (value > -accuracy[best]).all()
    assert check(state, model, 0) is None


def test_without_runs_on_all_data_nothing_is_checked() -> None:
    job, problem = declared("samples", "full")
    samples = np.flatnonzero(row_shares(problem) < 1)[:12].tolist()
    assert CheckAnswer(every=1)(State.present(problem, job.finished(samples)), Fabolas(care=1), 0) is None
