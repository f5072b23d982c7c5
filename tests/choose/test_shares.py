"""Choosers that know of the data fraction, foresight, and the product of outcomes that Nephele imagines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.information import ConstrainedIncumbent, KnowingTheBest
from lynceus.choose import Amount, AtEveryShare, Foresee, OnShares, Promising, Quadrature, TopRows, TopShare, Uniform
from lynceus.choose.imagine import imagine
from lynceus.fraction import Fraction, configurations
from lynceus.problem import Limit, Problem
from lynceus.situation import Situation
from lynceus.surrogate.fabolas import Fabolas
from lynceus.surrogate.foresighted_trees import ForesightedTrees
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.trees import Trees
from lynceus.testing import SmallJob, check_chooser, check_surrogate
from shares import small_share_job

BOTH = (KnowingTheBest(draws=256), ConstrainedIncumbent())


def declared(test: str = "samples", answer: str = "full", **changes: object) -> tuple[SmallJob, Problem]:
    job = small_share_job(**changes)  # type: ignore[arg-type]
    return job, job.problem.with_fraction(Fraction("share", test, answer))  # type: ignore[arg-type]


def rows_of(design: AtEveryShare, job: SmallJob, problem: Problem) -> list[int]:
    rows: list[int] = []
    while (plan := design(Situation.present(problem, job.finished(rows)), None, 5)) is not None:
        assert not plan.stoppable
        rows.append(plan.row)
    return rows


def test_a_design_meets_every_share_of_its_configurations() -> None:
    job, problem = declared()
    rows = rows_of(AtEveryShare(Amount(count=3)), job, problem)
    group = configurations(problem.space, "share")
    assert len(rows) == 6, "three configurations on two samples"
    assert [problem.share[row] for row in rows] == [0.05, 0.2] * 3
    assert len({group[row] for row in rows}) == 3
    smallest = rows_of(AtEveryShare(Amount(count=3), shares=1), job, problem)
    assert smallest == rows[::2]


def test_a_design_counts_configurations_and_not_runs() -> None:
    job, problem = declared("all", "any")
    # 3 % of 12 configurations are fewer than the space has parameters, which is the least.
    assert len(rows_of(AtEveryShare(), job, problem)) == 4 * 3
    with pytest.raises(ValueError, match="shares is 0"):
        AtEveryShare(shares=0)


def test_a_design_without_a_fraction_is_a_latin_hypercube() -> None:
    job = small_share_job()
    rows = rows_of(AtEveryShare(Amount(count=5)), job, job.problem)
    assert len(rows) == len(set(rows)) == 5


def test_a_design_ends_with_its_money() -> None:
    job, problem = declared()
    assert len(rows_of(AtEveryShare(Amount(usd=0.05)), job, problem)) < len(
        rows_of(AtEveryShare(Amount(usd=5.0)), job, problem)
    )


@pytest.mark.parametrize(("which", "shares"), [("samples", {0.05, 0.2}), ("full", {1.0})])
def test_only_these_shares_are_chosen(which: str, shares: set[float]) -> None:
    job, problem = declared("all", "full")
    chooser, rows = OnShares(which, Uniform()), []  # type: ignore[arg-type, var-annotated]
    while (plan := chooser(Situation.present(problem, job.finished(rows)), None, 2)) is not None:
        rows.append(plan.row)
    assert {float(problem.share[row]) for row in rows} == shares
    assert len(rows) == sum(bool(share in shares) for share in problem.share)


def test_where_nothing_is_a_sample_all_is_shown() -> None:
    job = small_share_job()
    assert OnShares("samples", Uniform())(Situation.present(job.problem, ()), None, 0) is not None


@pytest.mark.parametrize("surrogate", [Fabolas(), ForesightedTrees()], ids=lambda one: type(one).__name__)
def test_foresight_keeps_the_promises_of_choosers_and_surrogates(surrogate: Fabolas | ForesightedTrees) -> None:
    check_chooser(Foresee(BOTH), surrogate)
    check_surrogate(surrogate, tolerance=1e-6)


@pytest.mark.parametrize("surrogate", [Fabolas(), ForesightedTrees()], ids=lambda one: type(one).__name__)
def test_foresight_tests_samples_and_says_what_it_expects(surrogate: Fabolas | ForesightedTrees) -> None:
    job, problem = declared()
    history = job.finished([row for row in job.order_of_runs if problem.share[row] < 1][:6])
    situation = Situation.present(problem, history)
    plan = Foresee(BOTH)(situation, surrogate, 0)
    assert plan is not None
    assert problem.share[plan.row] < 1
    assert plan.expected is not None
    assert plan.usd > 0
    assert "about all data" in plan.why
    shorter = Foresee(BOTH, shortlist=TopShare(0.2, least=2))(situation, surrogate, 0)
    assert shorter is not None
    assert "best of 4 compared" in shorter.why, "18 rows are open"


def test_foresight_spends_only_what_is_left() -> None:
    job, problem = declared()
    history = job.finished([0, 3, 6, 9])
    poor = replace(Situation.present(problem, history), left=np.array([0.001]))
    assert Foresee(BOTH)(poor, Fabolas(), 0) is None
    assert Foresee(BOTH, sure=0.0)(poor, Fabolas(), 0) is not None


def test_overhead_makes_cheap_runs_less_attractive() -> None:
    job, problem = declared()
    situation = Situation.present(problem, job.finished([0, 3, 6, 9]))
    cheap, dear = (Foresee(BOTH, overhead=usd)(situation, Fabolas(), 0) for usd in (0.0, 100.0))
    assert cheap is not None
    assert dear is not None
    assert cheap.usd <= dear.usd


def test_foresight_needs_joint_draws() -> None:
    job, problem = declared()
    with pytest.raises(ValueError, match="foresight needs a surrogate with joint draws"):
        Foresee(BOTH)(Situation.present(problem, job.finished([0])), GaussianProcess(), 0)


def test_foresight_without_a_single_lesson_is_luck() -> None:
    job, problem = declared()
    lost = tuple(replace(seen, told=None) for seen in job.finished([0, 3]))
    plan = Foresee(BOTH)(Situation.present(problem, lost), Fabolas(), 0)
    assert plan is not None
    assert plan.why.startswith("random")


def test_only_rows_that_seem_to_keep_the_limits_are_shown() -> None:
    job = small_share_job("accuracy >= 0.9", "cost <= $0.30", goal="cost")
    situation = Situation.present(job.problem.with_fraction(Fraction("share")), job.finished(range(0, 36, 2)))
    surrogate = Trees(trees=5)
    belief = surrogate(situation, 4)
    seems = (belief.mean[0, :, 0] <= 0.3) & (belief.mean[0, :, 1] >= 0.9)
    chosen = {Promising(Uniform())(situation, surrogate, 4).row}  # type: ignore[union-attr]
    assert all(seems[row] and situation.open[row] for row in chosen)
    strict = replace(situation, problem=situation.problem.with_limits((Limit.parse("accuracy >= 0.999"),)))
    assert Promising(Uniform())(strict, surrogate, 4) is None
    with pytest.raises(ValueError, match="this policy has none"):
        Promising(Uniform())(situation, None, 0)


def test_a_share_of_the_candidates() -> None:
    _, problem = declared()
    situation = Situation.present(problem, ())
    score, candidates = np.arange(36.0), np.ones(36, dtype=bool)
    np.testing.assert_array_equal(
        TopShare(0.25)(situation, score, candidates, 0), TopRows(9)(situation, score, candidates, 0)
    )
    assert len(TopShare(0.01, least=3)(situation, score, candidates, 0)) == 3
    with pytest.raises(ValueError, match=r"share 0\.0 must lie in"):
        TopShare(0.0)


def test_the_product_of_outcomes_agrees_with_monte_carlo() -> None:
    """Cost × accuracy: weights sum to 1 and smooth functions of both have the mean of a million draws."""
    mean, std = np.array([[2.0, 0.8]]), np.array([[0.4, 0.05]])
    nodes, weights = Quadrature(5)(mean, std)
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


def test_imagined_outcomes_of_cost_and_accuracy_keep_both_limits() -> None:
    job = small_share_job("accuracy >= 0.9", "cost <= $0.30", goal="cost")
    situation = Situation.present(job.problem.with_fraction(Fraction("share")), job.finished([0, 1]))
    mean, std = np.array([[0.28, 0.9]]), np.array([[0.02, 0.03]])
    found = imagine(situation, "cost", np.array([5]), (mean, std), Quadrature(3), capped=False)
    cost, accuracy = found.told[0, :, 0], found.told[0, :, 1]
    kept = (accuracy >= 0.9) & (cost <= 0.3 + 1e-12)
    np.testing.assert_array_equal(~np.isnan(found.value[0]), kept)
    assert 0 < kept.sum() < 9
    assert found.weight[0] @ cost == pytest.approx(0.28)
