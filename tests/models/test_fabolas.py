"""The kernel of Fabolas and its regression, against explicit formulas and against fitting again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.models.fabolas import from_log_odds, log_odds
from lynceus.models.gaussian.fraction_kernel import FractionHyper, Plane, basis, fraction_prior, shortfall
from lynceus.models.gaussian.fraction_regression import FractionModel, fit_fractions, fit_members
from lynceus.models.gaussian.kernel import Inputs
from lynceus.models.gaussian.mcmc import stretched
from lynceus.models.gaussian.packed import log_evidence, packed_lower
from lynceus.models.gaussian.prior import Settings

SHARES = np.array([0.1, 0.25, 1.0])


def plane(configurations: int = 5, growth: str = "settling", seed: int = 0, shares: np.ndarray = SHARES) -> Plane:
    """Configurations with two numbers and one category, each at every data fraction."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.random((configurations, 2)), rng.integers(0, 2, configurations)])
    group = np.repeat(np.arange(configurations), len(shares))
    table = Inputs.of(features, ["numeric", "numeric", "categorical"])
    share = np.tile(shares, configurations)
    return Plane(table, group, basis(share, growth), shortfall(share))  # type: ignore[arg-type]


def members(count: int, seed: int = 0, trend: float = 1.0) -> FractionHyper:
    before = fraction_prior(Settings(), 2, 1)
    return FractionHyper.of_logs(before.draw(count, np.random.default_rng(seed)), 2, trend)


def by_hand(hyper: FractionHyper, where: Plane, member: int, left: int, right: int) -> float:
    """k((x, s), (x', s')) of two rows, by the formula."""
    i, j = where.group[left], where.group[right]
    gap = where.inputs.numeric[i] - where.inputs.numeric[j]
    s = np.sqrt(float(hyper.shape.roughness[member] @ np.square(gap)))
    matern = (1 + s + s * s / 3) * np.exp(-s)
    unequal = where.inputs.categorical[i] != where.inputs.categorical[j]
    matern *= np.exp(-float(hyper.shape.unlikeness[member] @ unequal))
    u = hyper.root[member]
    product = where.basis[left] @ u.T @ u @ where.basis[right]
    return float(matern * product + where.basis[left] @ np.diag(hyper.trend) @ where.basis[right])


def test_the_kernel_is_the_formula() -> None:
    where, hyper = plane(), members(3)
    rows = np.arange(len(where))
    k = hyper.covariance(where, rows, rows)
    for member in range(3):
        for left, right in ((0, 0), (0, 2), (1, 7), (14, 3), (8, 8)):
            assert k[member, left, right] == pytest.approx(by_hand(hyper, where, member, left, right), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["settling", "linear"]), st.integers(1, 8))
def test_the_kernel_is_positive_definite(seed: int, growth: str, configurations: int) -> None:
    where, hyper = plane(configurations, growth, seed), members(2, seed, trend=0.0)
    rows = np.arange(len(where))
    k = hyper.covariance(where, rows, rows)
    np.testing.assert_allclose(k, np.swapaxes(k, 1, 2), rtol=1e-12)
    smallest = np.linalg.eigvalsh(k).min(axis=1)
    assert (smallest >= -1e-10 * np.trace(k, axis1=1, axis2=2)).all()


@pytest.mark.parametrize("growth", ["settling", "linear"])
def test_on_one_fraction_the_kernel_is_matern(growth: str) -> None:
    where, hyper = plane(6, growth, shares=np.array([1.0])), members(4, trend=0.0)
    rows = np.arange(6)
    k = hyper.covariance(where, rows, rows)
    signal = k[:, 0, 0]
    np.testing.assert_allclose(k, signal[:, None, None] * hyper.likeness(where, rows, rows), rtol=1e-12)


def test_the_bases() -> None:
    np.testing.assert_allclose(basis(SHARES, "settling")[-1], [1, 0, 0])
    np.testing.assert_allclose(basis(SHARES, "settling")[0], [1, 1, 0])
    np.testing.assert_allclose(basis(SHARES, "linear")[[0, -1], 1], [0, 1])
    np.testing.assert_allclose(basis(np.ones(2), "settling"), [[1, 0, 0], [1, 0, 0]])


def model(count: int = 3, seed: int = 0) -> tuple[FractionModel, np.ndarray]:
    where, hyper = plane(seed=seed), members(count, seed)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(where))[:6]
    weights = rng.dirichlet(np.ones(count))
    y = rng.normal(size=6)
    return fit_members(where, hyper, weights, rows, y, unit=(0.3, 2.0)), y


def dense(one: FractionModel, member: int, rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a member at every row, by solving the whole system."""
    everything = np.arange(len(one.plane))
    k = one.hyper.covariance(one.plane, everything, everything)[member]
    noisy = k[np.ix_(rows, rows)] + np.diag(one.hyper.noise_at(one.plane, rows)[member])
    gain = np.linalg.solve(noisy, k[rows]).T
    return gain @ y, k - gain @ k[rows]


def test_moments_are_those_of_the_whole_system() -> None:
    one, y = model()
    parts = [dense(one, member, one.rows, y) for member in range(3)]
    mean = sum(w * m for w, (m, _) in zip(one.weights, parts, strict=True))
    second = sum(w * (np.diagonal(c) + m**2) for w, (m, c) in zip(one.weights, parts, strict=True))
    np.testing.assert_allclose(one.moments()[0], 0.3 + 2.0 * mean, rtol=1e-9)
    np.testing.assert_allclose(one.moments()[1], 2.0 * np.sqrt(second - mean**2), rtol=1e-7)
    rows = np.array([0, 4, 9])
    covariance = sum(w * (c + np.outer(m - mean, m - mean)) for w, (m, c) in zip(one.weights, parts, strict=True))
    np.testing.assert_allclose(one.covariance(rows, np.arange(15)), 4.0 * covariance[rows], atol=1e-9)


@pytest.mark.parametrize("extra", [1, 2])
def test_imagined_runs_equal_fitting_again(extra: int) -> None:
    one, y = model(seed=3)
    rng = np.random.default_rng(1)
    rows, values = rng.integers(0, 15, (4, extra)), rng.normal(size=(4, extra))
    mean, std = one.after(rows, 0.3 + 2.0 * values, np.arange(15))
    for b in range(4):
        both, target = np.concatenate([one.rows, rows[b]]), np.concatenate([y, values[b]])
        log_weights = np.log(one.weights) + _evidence(one, both, target) - _evidence(one, one.rows, y)
        weights = np.exp(log_weights - log_weights.max())
        again = fit_members(one.plane, one.hyper, weights / weights.sum(), both, target, unit=(0.3, 2.0))
        np.testing.assert_allclose(mean[b], again.moments()[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(std[b], again.moments()[1], rtol=1e-5, atol=1e-6)


def _evidence(one: FractionModel, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    from scipy.stats import multivariate_normal

    k = one.hyper.covariance(one.plane, rows, rows)
    noise = one.hyper.noise_at(one.plane, rows)
    found = [
        multivariate_normal(np.zeros(len(y)), k[member] + np.diag(noise[member])).logpdf(y)
        for member in range(len(one.hyper))
    ]
    np.testing.assert_allclose(log_evidence(packed_lower(k), y, noise), found, rtol=1e-6)
    return np.array(found)


def test_draws_have_the_moments_of_the_prediction() -> None:
    one, _ = model(seed=5)
    rows = np.array([2, 3, 8, 14])
    draws = one.draws(rows, 40_000, seed=1)
    mean, std = one.moments()
    error = 5 * std[rows] / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - mean[rows]) < error + 1e-3).all()
    np.testing.assert_allclose(np.cov(draws.T), one.covariance(rows, rows), atol=0.05 * np.square(std[rows]).max())
    np.testing.assert_array_equal(draws, one.draws(rows, 40_000, seed=1))


@pytest.mark.parametrize("chain", [0, 5])
def test_samples_predict_runs_on_all_data(chain: int) -> None:
    where = plane(12, seed=2)
    truth = np.sin(3 * where.inputs.numeric[:, 0])[where.group] + 0.5 * where.basis[:, 1]
    samples = np.flatnonzero(np.tile(SHARES, 12) < 1)
    learnt = fit_fractions(where, samples, truth[samples], 0, Settings(spread=None), chain=chain)
    full = np.flatnonzero(np.tile(SHARES, 12) == 1)
    mean, std = learnt.moments()
    assert np.corrcoef(mean[full], truth[full])[0, 1] > 0.95
    assert (np.abs(mean - truth)[full] < 4 * std[full] + 0.1).all()


def test_lower_bounds_raise_the_mean() -> None:
    where = plane(6)
    rows, y = np.array([0, 4, 8]), np.array([0.0, 0.1, 0.0])
    censored = np.array([False, False, True])
    exact = fit_fractions(where, rows, y, 0, Settings())
    bound = fit_fractions(where, rows, y, 0, Settings(), censored)
    assert bound.moments()[0][8] > exact.moments()[0][8]


def test_the_noise_falls_with_the_data() -> None:
    where, hyper = plane(), members(2)
    rows = np.arange(len(where))
    noise = hyper.noise_at(where, rows).reshape(2, -1, len(SHARES))
    np.testing.assert_allclose(noise[..., -1], hyper.noise[:, np.newaxis].repeat(5, axis=1))
    assert (np.diff(noise, axis=2) < 0).all()
    np.testing.assert_allclose(noise[..., 0], (hyper.noise * np.exp(hyper.decay))[:, np.newaxis].repeat(5, axis=1))


def test_a_jittery_sample_does_not_spoil_what_is_known_of_all_data() -> None:
    """Times of a second vary by half of themselves, times of a minute by a hundredth; the model must not mix them up."""
    where = plane(12, "linear", seed=4)
    rng = np.random.default_rng(0)
    rows = np.arange(len(where))
    level = 2.0 * where.inputs.numeric[where.group, 0]
    jitter = np.where(where.missing > 0.99, 0.5, 0.01)
    y = level + 2.0 * where.basis[:, 1] + jitter * rng.standard_normal(len(rows))
    model = fit_fractions(where, rows, y, 0, Settings(draws=128, rounds=3))
    noise = np.sqrt(model.noise(rows)).reshape(-1, len(SHARES))
    assert (noise[:, 0] > 2.0 * noise[:, -1]).all()
    assert (noise[:, -1] < 0.15).all()


def test_the_bound_of_a_noisier_row_is_a_weaker_bound() -> None:
    """With the same values, a lower bound on a sample says less about its row than the same bound on all data would."""
    where, hyper = plane(4, "linear"), members(1, seed=3)
    y, censored = np.array([0.0, 0.0, 1.5]), np.array([False, False, True])
    sample, full = (
        fit_members(where, hyper, np.ones(1), np.array([0, 3, row]), y, censored).site_variance[0, 2] for row in (6, 8)
    )
    assert sample > full


@pytest.mark.parametrize("y", [np.zeros(4), np.full(4, 7.0), np.array([1.0, 1.0, 1.0, 1.0 + 1e-14])])
def test_a_constant_target_is_predicted(y: np.ndarray) -> None:
    mean, std = fit_fractions(plane(), np.array([0, 3, 6, 9]), y, 0, Settings(spread=None)).moments()
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    np.testing.assert_allclose(mean[[0, 3, 6, 9]], y, atol=1e-3 + 0.2 * np.abs(y).max())


def test_equal_configurations_make_no_singular_system() -> None:
    where = plane(3)
    twins = Plane(
        Inputs(np.zeros((3, 2)), np.zeros((3, 1)), *([np.zeros(3)] if _has_trend() else [])),
        where.group,
        where.basis,
        where.missing,
    )
    rows = np.array([0, 0, 3, 3, 6, 6])
    mean, std = fit_fractions(twins, rows, np.array([0.0, 1.0, 0.0, 1.0, 0.5, 0.5]), 0, Settings()).moments()
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def _has_trend() -> bool:
    return "trend" in Inputs.__dataclass_fields__


def test_the_chain_draws_from_its_density() -> None:
    """A correlated normal: mean and covariance of many walkers after many moves."""
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    precision = np.linalg.inv(covariance)
    rng = np.random.default_rng(0)

    def log_density(theta: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.einsum("hi,ij,hj->h", theta, precision, theta))

    drawn = stretched(np.zeros((1, 2)), np.ones(1), log_density, 120, rng, walkers=4000)
    np.testing.assert_allclose(drawn.mean(axis=0), [0, 0], atol=0.12)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.25)


def test_the_chain_finds_the_posterior_that_emcee_finds() -> None:
    """Hyper-parameters of the kernel of Fabolas given twelve runs: the same means and spreads from both programs."""
    emcee = pytest.importorskip("emcee")
    where, options = plane(), Settings()
    rows = np.arange(12)
    y = np.sin(np.arange(12.0))
    before = fraction_prior(options, 2, 1)

    def log_posterior(theta: np.ndarray) -> np.ndarray:
        hyper = FractionHyper.of_logs(theta, 2, options.constant)
        noise = hyper.noise_at(where, rows)
        return np.asarray(
            before.log_density(theta) + log_evidence(packed_lower(hyper.covariance(where, rows, rows)), y, noise)
        )

    rng = np.random.default_rng(1)
    start = before.draw(64, rng)
    ours = stretched(start, np.full(64, 1 / 64), log_posterior, 150, rng, walkers=800)
    sampler = emcee.EnsembleSampler(64, start.shape[1], log_posterior, vectorize=True)
    sampler.random_state = np.random.RandomState(2).get_state()
    sampler.run_mcmc(start, 700)
    theirs = sampler.get_chain(discard=100, thin=5, flat=True)
    spread = theirs.std(axis=0)
    np.testing.assert_allclose((ours.mean(axis=0) - theirs.mean(axis=0)) / spread, 0.0, atol=0.25)
    np.testing.assert_allclose(ours.std(axis=0) / spread, 1.0, atol=0.2)


def test_log_odds_and_their_inverse() -> None:
    value = np.array([0.0, 0.2, 0.5, 0.98, 1.0])
    mean, std = from_log_odds(log_odds(value), np.zeros(5))
    np.testing.assert_allclose(mean, value, atol=1e-12)
    np.testing.assert_allclose(std, 0, atol=1e-7)
    rng = np.random.default_rng(0)
    drawn = rng.normal(1.0, 0.7, 400_000)
    values = 1.02 / (1 + np.exp(-drawn)) - 0.01
    mean, std = from_log_odds(np.array([1.0]), np.array([0.7]))
    assert mean[0] == pytest.approx(values.mean(), abs=1e-3)
    assert std[0] == pytest.approx(values.std(), abs=1e-3)
