"""p_opt, information and the constrained incumbent, against counting, integration and refitting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from lynceus.acquisition.entropy_search import (
    ConstrainedEntropySearch,
    ConstrainedIncumbent,
    EntropySearch,
    FeasibleConfiguration,
    Measured,
    information,
    knowledge,
    probability_of_best,
    recounted,
    winners,
)
from lynceus.models.fabolas import Fabolas, Target
from lynceus.models.gaussian.fraction_regression import fit_members
from lynceus.models.gaussian.prior import Settings
from lynceus.models.joint_trees import JointTrees
from lynceus.models.state import State
from lynceus.problem.data_fraction import Fraction, configurations, row_shares
from shares import small_share_job


def correlated(a: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(a, a))
    return rng.normal(size=a), root @ root.T / a + 0.1 * np.eye(a)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_probabilities_sum_to_one(a: int, seed: int) -> None:
    mean, covariance = correlated(a, seed)
    draws = np.random.default_rng(seed).multivariate_normal(mean, covariance, 200)
    probability = probability_of_best(draws)
    assert probability.sum() == pytest.approx(1.0)
    assert (probability >= 0).all()
    assert 0 <= float(knowledge(probability)) <= np.log(a) + 1e-12


def test_probabilities_agree_with_integration() -> None:
    """P(x_i is the smallest) of independent normals, by one integral each."""
    mean, std = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5, 2.0])
    x = np.linspace(-12, 12, 24_001)
    exact = []
    for i in range(3):
        others = np.prod([norm.sf(x, mean[j], std[j]) for j in range(3) if j != i], axis=0)
        exact.append(np.trapezoid(norm.pdf(x, mean[i], std[i]) * others, x))
    draws = np.random.default_rng(0).normal(mean, std, (200_000, 3))
    np.testing.assert_allclose(probability_of_best(draws), exact, atol=4e-3)


def test_infeasible_answers_cannot_win() -> None:
    draws = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    feasible = np.array([[True, True], [False, True], [False, False]])
    assert winners(draws, feasible).tolist() == [0, 1, 0]


def joint(a: int, r: int, seed: int, count: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draws at a answers and r rows, their covariance, and the noise of a measurement."""
    mean, covariance = correlated(a + r, seed)
    draws = np.random.default_rng(seed + 1).multivariate_normal(mean, covariance, count)
    return draws[:, :a], draws[:, a:], covariance, np.full(r, 0.05)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(0, 500))
def test_information_is_never_negative(a: int, seed: int) -> None:
    at_answers, at_rows, covariance, noise = joint(a, 3, seed, count=500)
    cross, seen = covariance[a:, :a], np.diagonal(covariance)[a:] + noise
    assert (information(at_answers, winners(at_answers), cross, seen) >= 0).all()
    errors = np.random.default_rng(0).standard_normal((500, 1)) * np.sqrt(noise)
    assert (recounted(at_answers, Measured(at_rows, errors, cross, seen)) >= 0).all()


def test_an_uncorrelated_row_has_no_information() -> None:
    at_answers, at_rows, covariance, noise = joint(4, 2, 7)
    cross = covariance[4:, :4].copy()
    cross[1] = 0.0
    seen = np.diagonal(covariance)[4:] + noise
    fast = information(at_answers, winners(at_answers), cross, seen)
    errors = np.random.default_rng(0).standard_normal((len(at_rows), 1)) * np.sqrt(noise)
    slow = recounted(at_answers, Measured(at_rows, errors, cross, seen))
    assert fast[1] == 0.0
    assert slow[1] == pytest.approx(0.0, abs=1e-12)
    assert fast[0] > 0.01
    assert slow[0] > 0.01


def test_draws_that_agree_leave_no_information() -> None:
    """Trees that all agree have a covariance of rounding errors only, which must not be divided by their variance of 0."""
    draws = np.tile([1.0, 2.0, 3.0], (50, 1))
    assert (information(draws, winners(draws), np.full((2, 3), 1e-31), np.full(2, 1e-12)) == 0.0).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_both_forms_agree_with_conditioning_and_new_draws(seed: int) -> None:
    """E_y[KL(p_opt(· | y) ‖ uniform)] - KL(p_opt ‖ uniform), p_opt(· | y) by fresh draws from the conditional normal."""
    a, rng = 3, np.random.default_rng(seed)
    mean, covariance = correlated(a + 1, seed)
    noise = 0.05
    draws = rng.multivariate_normal(mean, covariance, 40_000)
    seen, cross = covariance[a, a] + noise, covariance[a, :a]
    now = knowledge(probability_of_best(draws[:, :a]))
    points, weights = np.polynomial.hermite_e.hermegauss(15)
    exact = -now
    left = covariance[:a, :a] - np.outer(cross, cross) / seen
    base = rng.multivariate_normal(np.zeros(a), left, 60_000)
    for z, weight in zip(points, weights / weights.sum(), strict=True):
        moved = mean[:a] + cross * z / np.sqrt(seen)
        exact += weight * knowledge(probability_of_best(base + moved))
    row = (cross[None], np.array([seen]))
    fast = information(draws[:, :a], winners(draws[:, :a]), *row)[0]
    errors = rng.standard_normal((len(draws), 1)) * np.sqrt(noise)
    slow = recounted(draws[:, :a], Measured(draws[:, a:], errors, *row), points=9)[0]
    assert slow == pytest.approx(exact, abs=0.02)
    assert fast == pytest.approx(exact, abs=0.05 + 0.35 * exact), "normal entropies are an approximation"


def test_the_constrained_incumbent_against_refitting() -> None:
    """One member, so that a process with one more observation at its own mean can be fitted again and compared."""
    job = small_share_job()
    problem = Fraction("share", "samples", "full").apply(job.problem)
    observations = job.finished([row for row in job.order_of_runs if row_shares(problem)[row] < 1][:9])
    state = State.present(problem, observations)
    surrogate = Fabolas(settings=Settings(kept=1), metrics="raw")
    joint = surrogate.predict_jointly(state, 3)
    rows = np.flatnonzero(row_shares(problem) < 1)[:12]
    found = ConstrainedIncumbent(confidence=0.8)(joint, state, rows)
    now = joint.targets
    for row, value in zip(rows, found, strict=True):
        refitted = []
        for target in now:
            model = target.model
            assert model is not None
            shift, scale = model.unit
            expected = (model.moments()[0][row] - shift) / scale
            more = fit_members(
                model.plane, model.hyper, model.weights, np.append(model.rows, row),
                np.append(model.site_mean[0], expected), unit=model.unit,
            )  # fmt: skip
            refitted.append(Target(more, len(problem.space), target.odds, target.noisy).moments())
        assert value == pytest.approx(_slow_utility(problem, joint.answers, refitted, 0.8), rel=1e-6)


def _slow_utility(
    problem: object, answers: np.ndarray, refitted: list[tuple[np.ndarray, np.ndarray]], confidence: float
) -> float:
    """Accuracy of the incumbent times its probability of feasibility, one answer after the other."""
    (log_time, spread), (accuracy, _) = refitted
    best, most_probable = None, (0.0, 0.0)
    for row in answers:
        ceiling = problem.ceiling_s[row]  # type: ignore[attr-defined]
        probability = float(norm.cdf((np.log(ceiling) - log_time[row]) / spread[row]))
        if probability >= confidence and (best is None or accuracy[row] > best[0]):
            best = (float(accuracy[row]), probability)
        if probability > most_probable[1]:
            most_probable = (float(accuracy[row]), probability)
    chosen = best or most_probable
    return chosen[0] * chosen[1]


def test_the_same_seed_gives_the_same_utility() -> None:
    job = small_share_job()
    problem = Fraction("share", "samples", "full").apply(job.problem)
    state = State.present(problem, job.finished([0, 4, 8, 12]))
    rows = np.flatnonzero(state.open)
    utility = EntropySearch(draws=200)
    one, two = (utility(Fabolas().predict_jointly(state, 1), state, rows) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert (one >= 0).all()
    assert one.max() > 0


@dataclass(frozen=True)
class TwoQuantities:
    """An objective and a constrained quantity of two answers; the first row measures both, the second neither."""

    objective: np.ndarray
    quantity: np.ndarray
    bound: float = 0.0

    @property
    def answers(self) -> np.ndarray:
        return np.arange(2)

    def draws(self, rows: np.ndarray, count: int) -> np.ndarray:
        return np.random.default_rng(0).multivariate_normal([0.0, 0.5], self.objective, count)

    def _quantity_draws(self, count: int) -> np.ndarray:
        return np.random.default_rng(1).multivariate_normal([0.0, -1.0], self.quantity, count)

    def feasible_draws(self, count: int) -> np.ndarray:
        return self._quantity_draws(count) <= self.bound

    def covariance(self, rows: np.ndarray) -> np.ndarray:
        return np.vstack([self.objective[0], np.zeros(2)])[rows]

    def measurement_variance(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.objective[0, 0] + 0.01, 1.0])[rows]

    def constrained(self, rows: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        cross = np.vstack([self.quantity[0], np.zeros(2)])[rows]
        return [(self._quantity_draws(count), cross, np.array([self.quantity[0, 0] + 0.01, 1.0])[rows])]


def test_information_about_a_constraint_counts_like_information_about_the_objective() -> None:
    """The objective is nearly known; which answer is best depends only on the feasibility of the better one."""
    known = TwoQuantities(1e-6 * np.eye(2), np.diag([1.0, 1e-6]))
    rows = np.arange(2)
    of_objective = EntropySearch()(known, None, rows)  # type: ignore[arg-type]
    of_both = ConstrainedEntropySearch()(known, None, rows)  # type: ignore[arg-type]
    assert of_objective[0] == pytest.approx(0.0, abs=1e-3)
    # The better answer is feasible with probability 1/2, and one measurement nearly decides it; normals understate a step.
    assert 0.35 < of_both[0] <= np.log(2.0)
    assert of_both[1] == 0.0


def test_with_certain_constraints_only_the_objective_counts() -> None:
    free = TwoQuantities(np.eye(2), 1e-9 * np.eye(2), bound=5.0)
    rows = np.arange(2)
    np.testing.assert_allclose(
        ConstrainedEntropySearch()(free, None, rows),  # type: ignore[arg-type]
        EntropySearch()(free, None, rows),  # type: ignore[arg-type]
        atol=5e-3,
    )


@pytest.mark.parametrize("surrogate", [Fabolas(), JointTrees()])
def test_models_predict_constrained_quantities(surrogate: Fabolas | JointTrees) -> None:
    job = small_share_job("accuracy >= 0.9", objective="cost")
    problem = Fraction("share", "samples", "full").apply(job.problem)
    state = State.present(problem, job.finished([0, 4, 8, 12, 16, 20]))
    joint = surrogate.predict_jointly(state, 1)
    rows = np.flatnonzero(state.open)[:7]
    ((draws, cross, seen),) = joint.constrained(rows, 300)
    assert draws.shape == (300, len(joint.answers))
    assert cross.shape == (7, len(joint.answers))
    assert (seen > 0).all()
    utility = ConstrainedEntropySearch(draws=300)(joint, state, rows)
    assert (utility >= 0).all()
    assert np.isfinite(utility).all()


def test_feasibility_of_a_configuration_is_that_of_its_run_on_all_data() -> None:
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    samples = np.flatnonzero(row_shares(problem) < 1)[:12].tolist()
    state = State.present(problem, job.finished(samples))
    foreseen = Fabolas(care=1).predict_jointly(state, 0)
    probability = FeasibleConfiguration(256)(foreseen, state, np.arange(len(problem.space)))
    np.testing.assert_allclose(probability[foreseen.answers], foreseen.feasible_draws(256).mean(axis=0))
    group = configurations(problem.space, "share")
    for one in np.unique(group):
        assert len(np.unique(probability[group == one])) == 1
