"""p_opt, information and the constrained incumbent, against counting, integration and refitting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from lynceus.acquisition.information import (
    ConstrainedIncumbent,
    KnowingTheBest,
    KnowingTheBestAllowed,
    Measured,
    chance_of_best,
    chance_within,
    goal_value,
    information,
    knowledge,
    recounted,
    winners,
)
from lynceus.fraction import Fraction
from lynceus.situation import Situation
from lynceus.surrogate.fabolas import Fabolas, Target
from lynceus.surrogate.foresighted_trees import ForesightedTrees
from lynceus.surrogate.fraction_model import fit_members
from lynceus.surrogate.gaussian_prior import Settings
from shares import small_share_job


def correlated(a: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(a, a))
    return rng.normal(size=a), root @ root.T / a + 0.1 * np.eye(a)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_chances_sum_to_one(a: int, seed: int) -> None:
    mean, covariance = correlated(a, seed)
    draws = np.random.default_rng(seed).multivariate_normal(mean, covariance, 200)
    chance = chance_of_best(draws)
    assert chance.sum() == pytest.approx(1.0)
    assert (chance >= 0).all()
    assert 0 <= float(knowledge(chance)) <= np.log(a) + 1e-12


def test_chances_agree_with_integration() -> None:
    """P(x_i is the smallest) of independent normals, by one integral each."""
    mean, std = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5, 2.0])
    x = np.linspace(-12, 12, 24_001)
    exact = []
    for i in range(3):
        others = np.prod([norm.sf(x, mean[j], std[j]) for j in range(3) if j != i], axis=0)
        exact.append(np.trapezoid(norm.pdf(x, mean[i], std[i]) * others, x))
    draws = np.random.default_rng(0).normal(mean, std, (200_000, 3))
    np.testing.assert_allclose(chance_of_best(draws), exact, atol=4e-3)


def test_what_breaks_a_limit_cannot_be_the_best() -> None:
    draws = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    allowed = np.array([[True, True], [False, True], [False, False]])
    assert winners(draws, allowed).tolist() == [0, 1, 0]


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


def test_a_row_that_hangs_together_with_nothing_tells_nothing() -> None:
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


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_both_forms_agree_with_conditioning_and_drawing_anew(seed: int) -> None:
    """E_y[KL(p_opt(· | y) ‖ uniform)] - KL(p_opt ‖ uniform), p_opt(· | y) by fresh draws from the conditional normal."""
    a, rng = 3, np.random.default_rng(seed)
    mean, covariance = correlated(a + 1, seed)
    noise = 0.05
    draws = rng.multivariate_normal(mean, covariance, 40_000)
    seen, cross = covariance[a, a] + noise, covariance[a, :a]
    now = knowledge(chance_of_best(draws[:, :a]))
    points, weights = np.polynomial.hermite_e.hermegauss(15)
    exact = -now
    left = covariance[:a, :a] - np.outer(cross, cross) / seen
    base = rng.multivariate_normal(np.zeros(a), left, 60_000)
    for z, weight in zip(points, weights / weights.sum(), strict=True):
        moved = mean[:a] + cross * z / np.sqrt(seen)
        exact += weight * knowledge(chance_of_best(base + moved))
    row = (cross[None], np.array([seen]))
    fast = information(draws[:, :a], winners(draws[:, :a]), *row)[0]
    errors = rng.standard_normal((len(draws), 1)) * np.sqrt(noise)
    slow = recounted(draws[:, :a], Measured(draws[:, a:], errors, *row), points=9)[0]
    assert slow == pytest.approx(exact, abs=0.02)
    assert fast == pytest.approx(exact, abs=0.05 + 0.35 * exact), "normal entropies are an approximation"


def test_the_constrained_incumbent_against_really_refitting() -> None:
    """One member, so that a process with one more observation at its own mean can be fitted anew and compared."""
    job = small_share_job()
    problem = job.problem.with_fraction(Fraction("share", "samples", "full"))
    history = job.finished([row for row in job.order_of_runs if problem.share[row] < 1][:9])
    situation = Situation.present(problem, history)
    surrogate = Fabolas(settings=Settings(kept=1), metrics="raw")
    foresight = surrogate.foresee(situation, 3)
    rows = np.flatnonzero(problem.share < 1)[:12]
    found = ConstrainedIncumbent(sure=0.8)(foresight, situation, rows)
    now = foresight.targets
    for row, value in zip(rows, found, strict=True):
        anew = []
        for target in now:
            model = target.model
            assert model is not None
            shift, scale = model.unit
            told = (model.moments()[0][row] - shift) / scale
            more = fit_members(
                model.plane, model.hyper, model.weights, np.append(model.rows, row),
                np.append(model.site_mean[0], told), unit=model.unit,
            )  # fmt: skip
            anew.append(Target(more, len(problem.space), target.odds, target.noisy).moments())
        assert value == pytest.approx(_slow_worth(problem, foresight.answers, anew, 0.8), rel=1e-6)


def _slow_worth(problem: object, answers: np.ndarray, anew: list[tuple[np.ndarray, np.ndarray]], sure: float) -> float:
    """Accuracy of the incumbent times its chance to keep the cap on cost, one answer after the other."""
    (log_time, spread), (accuracy, _) = anew
    best, surest = None, (0.0, 0.0)
    for row in answers:
        ceiling = problem.ceiling_s[row]  # type: ignore[attr-defined]
        chance = float(norm.cdf((np.log(ceiling) - log_time[row]) / spread[row]))
        if chance >= sure and (best is None or accuracy[row] > best[0]):
            best = (float(accuracy[row]), chance)
        if chance > surest[1]:
            surest = (float(accuracy[row]), chance)
    chosen = best or surest
    return chosen[0] * chosen[1]


def test_the_same_luck_gives_the_same_worth() -> None:
    job = small_share_job()
    problem = job.problem.with_fraction(Fraction("share", "samples", "full"))
    situation = Situation.present(problem, job.finished([0, 4, 8, 12]))
    rows = np.flatnonzero(situation.open)
    worth = KnowingTheBest(draws=200)
    one, two = (worth(Fabolas().foresee(situation, 1), situation, rows) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert (one >= 0).all()
    assert one.max() > 0


@dataclass(frozen=True)
class TwoQuantities:
    """A goal and a limited quantity of two answers, both of which one row measures; a second row measures nothing."""

    goal: np.ndarray
    limited_by: np.ndarray
    bound: float = 0.0

    @property
    def answers(self) -> np.ndarray:
        return np.arange(2)

    def draws(self, rows: np.ndarray, count: int) -> np.ndarray:
        return np.random.default_rng(0).multivariate_normal([0.0, 0.5], self.goal, count)

    def _limited_draws(self, count: int) -> np.ndarray:
        return np.random.default_rng(1).multivariate_normal([0.0, -1.0], self.limited_by, count)

    def kept(self, count: int) -> np.ndarray:
        return self._limited_draws(count) <= self.bound

    def cross(self, rows: np.ndarray) -> np.ndarray:
        return np.vstack([self.goal[0], np.zeros(2)])[rows]

    def seen(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.goal[0, 0] + 0.01, 1.0])[rows]

    def limited(self, rows: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        cross = np.vstack([self.limited_by[0], np.zeros(2)])[rows]
        return [(self._limited_draws(count), cross, np.array([self.limited_by[0, 0] + 0.01, 1.0])[rows])]


def test_what_a_run_says_of_a_limit_counts_as_much_as_what_it_says_of_the_goal() -> None:
    """The goal is as good as known; all that decides which answer is best is whether the better one keeps its limit."""
    known = TwoQuantities(1e-6 * np.eye(2), np.diag([1.0, 1e-6]))
    rows = np.arange(2)
    of_goal = KnowingTheBest()(known, None, rows)  # type: ignore[arg-type]
    of_both = KnowingTheBestAllowed()(known, None, rows)  # type: ignore[arg-type]
    assert of_goal[0] == pytest.approx(0.0, abs=1e-3)
    # Whether the better answer keeps its limit is one fair coin, and one measurement nearly settles it; normals understate a step.
    assert 0.35 < of_both[0] <= np.log(2.0)
    assert of_both[1] == 0.0


def test_without_doubt_about_limits_only_the_goal_counts() -> None:
    free = TwoQuantities(np.eye(2), 1e-9 * np.eye(2), bound=5.0)
    rows = np.arange(2)
    np.testing.assert_allclose(
        KnowingTheBestAllowed()(free, None, rows),  # type: ignore[arg-type]
        KnowingTheBest()(free, None, rows),  # type: ignore[arg-type]
        atol=5e-3,
    )


@pytest.mark.parametrize("surrogate", [Fabolas(), ForesightedTrees()])
def test_models_say_what_they_know_of_limited_quantities(surrogate: Fabolas | ForesightedTrees) -> None:
    job = small_share_job("accuracy >= 0.9", goal="cost")
    problem = job.problem.with_fraction(Fraction("share", "samples", "full"))
    situation = Situation.present(problem, job.finished([0, 4, 8, 12, 16, 20]))
    foresight = surrogate.foresee(situation, 1)
    rows = np.flatnonzero(situation.open)[:7]
    ((draws, cross, seen),) = foresight.limited(rows, 300)
    assert draws.shape == (300, len(foresight.answers))
    assert cross.shape == (7, len(foresight.answers))
    assert (seen > 0).all()
    worth = KnowingTheBestAllowed(draws=300)(foresight, situation, rows)
    assert (worth >= 0).all()
    assert np.isfinite(worth).all()


def test_beliefs_about_some_rows_speak_as_beliefs_about_all() -> None:
    job = small_share_job()
    problem = job.problem.with_fraction(Fraction("share", "all", "full"))
    situation = Situation.present(problem, job.finished([0, 4, 8, 12]))
    belief = Fabolas()(situation, 0)
    rows = np.arange(len(problem.space))
    np.testing.assert_allclose(chance_within(belief, problem, rows), belief.feasible(problem))
    np.testing.assert_allclose(goal_value(belief, problem, rows)[0], -belief.mean[0, :, 1])
