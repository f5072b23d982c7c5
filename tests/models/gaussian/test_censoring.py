"""Lower bounds as data: expectation propagation against importance sampling."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal

from lynceus.models.gaussian.censoring import propagate
from lynceus.models.gaussian.kernel import Hyper, Inputs
from lynceus.models.gaussian.packed import packed_lower
from lynceus.models.gaussian.regression import fit, fit_given
from lynceus.space.column import FloatArray

FEATURES = np.linspace(0.0, 1.0, 6)[:, np.newaxis]
INPUTS = Inputs.of(FEATURES, ["numeric"])
HYPER = Hyper.of_logs(np.log([[0.5, 1.2, 0.05]]), 1, 0.5)


def importance_sampled(rows: FloatArray, y: FloatArray, censored: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Mean and std of f on the table and ln evidence: draws given the exact values, weighted by P(f + ε > bound)."""
    everywhere = np.arange(len(FEATURES))
    whole = HYPER.covariance(INPUTS.gaps(everywhere[:, np.newaxis], everywhere))[0]
    noise = HYPER.noise[0]
    exact, bounds = rows[~censored], rows[censored]
    mean, covariance, log_exact = np.zeros(len(FEATURES)), whole, 0.0
    if len(exact):
        noisy = whole[np.ix_(exact, exact)] + noise * np.eye(len(exact))
        gain = np.linalg.solve(noisy, whole[exact]).T
        mean, covariance = gain @ y[~censored], whole - gain @ whole[exact]
        log_exact = float(multivariate_normal.logpdf(y[~censored], cov=noisy))
    generator = np.random.default_rng(0)
    draws = generator.multivariate_normal(mean, covariance + 1e-10 * np.eye(len(mean)), 400_000, method="cholesky")
    log_weights = log_ndtr((draws[:, bounds] - y[censored]) / np.sqrt(noise)).sum(axis=1)
    weights = np.exp(log_weights)
    average = weights @ draws / weights.sum()
    spread = np.sqrt(weights @ (draws - average) ** 2 / weights.sum())
    return average, spread, log_exact + float(np.log(weights.mean()))


@pytest.mark.parametrize(
    ("rows", "y", "censored"),
    [
        ([2], [0.8], [True]),
        ([1, 4], [0.3, 1.0], [False, True]),
        ([1, 4], [0.5, 0.9], [True, True]),
        ([0, 3, 4], [-0.5, 0.7, 1.1], [False, True, True]),
        ([0, 3, 3], [0.2, 0.5, -0.5], [False, True, True]),
        ([0, 5], [0.0, -6.0], [False, True]),
    ],
)
def test_posterior_and_evidence_agree_with_importance_sampling(
    rows: list[int], y: list[float], censored: list[bool]
) -> None:
    place, values, bounds = np.array(rows), np.array(y), np.array(censored)
    model = fit_given(INPUTS, HYPER, np.ones(1), place, values, bounds)
    mean, std, log_evidence = importance_sampled(place, values, bounds)
    assert model.mean == pytest.approx(mean, abs=0.02)
    assert model.std == pytest.approx(std, abs=0.03)
    covariance = HYPER.covariance(INPUTS.gaps(place[:, np.newaxis], place))
    sites = propagate(packed_lower(covariance), values, HYPER.noise, bounds)
    got = multivariate_normal.logpdf(sites.mean[0], cov=covariance[0] + np.diag(sites.variance[0]))
    assert float(got) + float(sites.log_scale[0]) == pytest.approx(log_evidence, abs=0.03)


def test_a_bound_far_below_has_no_effect_and_one_far_above_raises_the_mean() -> None:
    rows, y = np.array([0, 1, 2]), np.array([1.0, 1.2, 1.1])
    without = fit_given(INPUTS, HYPER, np.ones(1), rows, y)
    bounds = np.array([False, False, False, True])
    low = fit_given(INPUTS, HYPER, np.ones(1), np.r_[rows, 5], np.r_[y, -50.0], bounds)
    assert low.mean == pytest.approx(without.mean, abs=1e-3)
    assert low.std == pytest.approx(without.std, abs=1e-3)
    high = fit_given(INPUTS, HYPER, np.ones(1), np.r_[rows, 5], np.r_[y, 4.0], bounds)
    assert high.mean[5] > 3.5
    assert high.mean[5] > fit_given(INPUTS, HYPER, np.ones(1), np.r_[rows, 5], np.r_[y, 3.0], bounds).mean[5]


@pytest.mark.parametrize("bound", [40.0, 1e4])
def test_an_impossible_bound_stays_finite(bound: float) -> None:
    rows, y, bounds = np.array([0, 1, 5]), np.array([0.0, 0.0, bound]), np.array([False, False, True])
    model = fit_given(INPUTS, HYPER, np.ones(1), rows, y, bounds)
    assert np.isfinite(model.mean).all()
    assert np.isfinite(model.std).all()
    assert model.mean[5] > model.mean[0]


def test_bounds_are_better_than_treating_them_as_values() -> None:
    features = np.random.default_rng(4).random((150, 2))
    truth = 3.0 * features[:, 0] + np.sin(5.0 * features[:, 1])
    rows = np.arange(30)
    bound = np.minimum(truth[rows], 1.5)
    censored = truth[rows] > 1.5
    bounded = fit(features, ["numeric"] * 2, rows, bound, 0, censored=censored)
    exact = fit(features, ["numeric"] * 2, rows, bound, 0)
    rest = np.arange(30, 150)
    assert np.abs(bounded.mean - truth)[rest].mean() < np.abs(exact.mean - truth)[rest].mean()
