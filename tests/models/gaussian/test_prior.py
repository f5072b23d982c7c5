"""Averaging over hyper-parameters against a posterior that is known."""

import numpy as np
import pytest

from lynceus.models.gaussian.kernel import inverse_lower, lower_factor
from lynceus.models.gaussian.prior import NormalVector, Settings, prior, tempered, weighted_draws, weights_of
from lynceus.space.column import FloatArray


def test_weighted_draws_represent_a_known_posterior() -> None:
    before = NormalVector(np.zeros(3), np.eye(3))
    seen, noise = np.array([1.5, -1.0, 0.0]), 0.2  # a normal likelihood: the posterior is normal too

    def log_likelihood(theta: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.square((theta - seen) / noise).sum(axis=1))

    means, spreads = [], []
    for seed in range(20):
        theta, weights = weighted_draws(
            before, log_likelihood, Settings(rounds=3, kept=64), np.random.default_rng(seed)
        )
        assert weights.sum() == pytest.approx(1.0)
        means.append(weights @ theta)
        spreads.append(np.sqrt(weights @ np.square(theta - weights @ theta)))
    assert np.mean(means, axis=0) == pytest.approx(seen / (1.0 + noise**2), abs=0.03)
    assert np.mean(spreads, axis=0) == pytest.approx(noise / np.sqrt(1.0 + noise**2), abs=0.05)


def test_draws_are_stratified_and_follow_their_normal() -> None:
    factor = np.array([[1.0, 0.0], [0.8, 0.6]])
    draws = NormalVector(np.array([2.0, -1.0]), factor).draw(4000, np.random.default_rng(0))
    assert draws.mean(axis=0) == pytest.approx([2.0, -1.0], abs=0.01)
    assert np.cov(draws.T) == pytest.approx(factor @ factor.T, abs=0.05)


def test_density_of_a_normal_vector_integrates_to_one() -> None:
    normal = NormalVector(np.array([0.3]), np.array([[0.7]]))
    grid = np.linspace(-6.0, 6.0, 2001)[:, np.newaxis]
    assert np.exp(normal.log_density(grid)).sum() * 0.006 == pytest.approx(1.0)


def test_lengths_grow_with_the_number_of_features() -> None:
    few, many = prior(Settings(), 1, 0), prior(Settings(), 16, 2)
    assert many.mean[0] - few.mean[0] == pytest.approx(0.5 * np.log(16.0))
    assert len(many.mean) == 16 + 2 + 2


def test_tempering_keeps_an_effective_number_of_draws() -> None:
    steep = np.linspace(0.0, 500.0, 40)
    even = np.zeros(40)
    assert 1.0 / np.square(weights_of(tempered(steep, 5.0))).sum() == pytest.approx(5.0, rel=0.2)
    assert (tempered(even, 5.0) == even).all()
    assert np.isfinite(weights_of(tempered(np.array([-np.inf, 0.0, np.nan]), 2.0))).all()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40])
def test_triangular_inverse(size: int) -> None:
    raw = np.random.default_rng(size).standard_normal((3, size, size))
    matrices = raw @ raw.transpose(0, 2, 1) + np.eye(size)
    factor = lower_factor(matrices)
    assert factor @ factor.transpose(0, 2, 1) == pytest.approx(matrices)
    assert inverse_lower(factor) @ factor == pytest.approx(np.broadcast_to(np.eye(size), (3, size, size)), abs=1e-9)


def test_only_singular_matrices_get_jitter() -> None:
    matrices = np.stack([np.eye(3) * 4.0, np.ones((3, 3)), -np.eye(3)])
    factor = lower_factor(matrices)
    assert np.isfinite(factor).all()
    assert factor[0] == pytest.approx(2.0 * np.eye(3))
    assert factor[1] @ factor[1].T == pytest.approx(np.ones((3, 3)), abs=1e-3)
