"""Improvements and probabilities against Monte Carlo, and far in the tails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.acquisition import (
    capped_cost,
    constrained_improvement,
    expected_improvement,
    log_expected_improvement,
    log_probability_within,
    log_truncated_improvement,
    per_dollar,
    probability_within,
    truncated_improvement,
)
from lynceus.distribution import FloatArray, LogNormal, Normal

BELIEFS = [Normal(2.0, 0.7), LogNormal(0.5, 0.6)]


def sample(belief: Normal | LogNormal) -> FloatArray:
    draws = belief.mean + belief.std * np.random.default_rng(3).standard_normal(400_000)
    return np.asarray(draws if isinstance(belief, Normal) else np.exp(draws))


def assert_agrees(exact: FloatArray, draws: FloatArray) -> None:
    assert abs(float(exact) - draws.mean()) <= 5.0 * draws.std() / np.sqrt(draws.size)


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("best", [0.8, 1.6, 3.0])
@pytest.mark.parametrize("ceiling", [1.2, 2.0, np.inf])
def test_improvements_agree_with_monte_carlo(belief: Normal | LogNormal, best: float, ceiling: float) -> None:
    draws = sample(belief)
    gains = np.maximum(best - draws, 0.0)
    assert_agrees(expected_improvement(belief, best), gains)
    assert_agrees(truncated_improvement(belief, best, ceiling), gains * (draws <= ceiling))
    assert_agrees(capped_cost(belief, best), np.minimum(draws, best))
    truncated = float(truncated_improvement(belief, best, ceiling))
    assert np.exp(log_truncated_improvement(belief, best, ceiling)) == pytest.approx(truncated, rel=1e-9)


@pytest.mark.parametrize("belief", BELIEFS)
def test_probabilities_agree_with_monte_carlo(belief: Normal | LogNormal) -> None:
    draws = sample(belief)
    assert_agrees(probability_within(belief, at_most=1.5), (draws <= 1.5).astype(float))
    assert_agrees(probability_within(belief, at_least=1.5), (draws >= 1.5).astype(float))
    both = (draws >= 1.1) & (draws <= 2.3)
    assert_agrees(probability_within(belief, at_most=2.3, at_least=1.1), both.astype(float))


@pytest.mark.parametrize("z", [-40.0, 40.0])
def test_a_narrow_window_far_in_a_tail_keeps_its_logarithm(z: float) -> None:
    log_window = log_probability_within(Normal(0.0, 1.0), at_most=z + 0.01, at_least=z - 0.01)
    log_density = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
    assert float(log_window) == pytest.approx(log_density + np.log(0.02), abs=0.1)


def test_a_window_that_is_empty_has_no_probability() -> None:
    assert float(probability_within(Normal(0.0, 1.0), at_most=-1.0, at_least=1.0)) == 0.0
    assert float(probability_within(Normal(0.0, 0.0), at_most=0.0, at_least=0.0)) == 1.0
    assert float(probability_within(Normal(0.0, 1.0))) == 1.0


def test_log_forms_rank_where_the_plain_forms_underflow() -> None:
    belief = Normal(np.array([40.0, 50.0, 60.0]), 1.0)
    assert (expected_improvement(belief, 0.0) == 0.0).all()
    for logs in (log_expected_improvement(belief, 0.0), log_truncated_improvement(belief, 0.0, -1.0)):
        assert np.isfinite(logs).all()
        assert (np.diff(logs) < 0.0).all()


@given(st.floats(-3.0, 3.0), st.floats(0.0, 2.0), st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
@settings(deadline=None)
def test_truncation_only_takes_away(mean: float, std: float, best: float, ceiling: float) -> None:
    belief = Normal(mean, std)
    whole = expected_improvement(belief, best)
    kept = truncated_improvement(belief, best, ceiling)
    assert 0.0 <= kept <= whole + 1e-12
    assert kept >= whole * belief.cdf(ceiling) - 1e-12  # the product form counts the uncertainty twice


def test_limits_multiply_and_money_divides() -> None:
    gain = np.array([2.0, 3.0])
    assert constrained_improvement(gain).tolist() == [2.0, 3.0]
    assert constrained_improvement(gain, np.array([0.5, 0.0]), 0.5).tolist() == [0.5, 0.0]
    assert per_dollar(gain, np.array([4.0, -1.0])).tolist() == [0.5, np.inf]
