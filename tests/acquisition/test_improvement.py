"""Improvements against Monte Carlo, and how they compare."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.acquisition.improvement import billed_improvement, expected_improvement, truncated_improvement
from lynceus.models.distribution import LogNormal, Normal
from lynceus.space.column import FloatArray

PREDICTIONS = [Normal(2.0, 0.7), LogNormal(0.5, 0.6)]
SECONDS = LogNormal(np.log(100.0), 0.7)
DRAWS = np.exp(np.log(100.0) + 0.7 * np.random.default_rng(11).standard_normal(400_000))


def sample(prediction: Normal | LogNormal) -> FloatArray:
    draws = prediction.mean + prediction.std * np.random.default_rng(3).standard_normal(400_000)
    return np.asarray(draws if isinstance(prediction, Normal) else np.exp(draws))


def assert_agrees(exact: FloatArray, draws: FloatArray) -> None:
    assert abs(float(exact) - draws.mean()) <= 5.0 * draws.std() / np.sqrt(draws.size) + 1e-12


@pytest.mark.parametrize("prediction", PREDICTIONS)
@pytest.mark.parametrize("best", [0.8, 1.6, 3.0])
@pytest.mark.parametrize("ceiling", [1.2, 2.0, np.inf])
def test_improvements_agree_with_monte_carlo(prediction: Normal | LogNormal, best: float, ceiling: float) -> None:
    draws = sample(prediction)
    gains = np.maximum(best - draws, 0.0)
    assert_agrees(expected_improvement(prediction, best), gains)
    assert_agrees(truncated_improvement(prediction, best, ceiling), gains * (draws <= ceiling))


@given(st.floats(-3.0, 3.0), st.floats(0.0, 2.0), st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
@settings(deadline=None)
def test_truncation_only_lowers_the_improvement(mean: float, std: float, best: float, ceiling: float) -> None:
    prediction = Normal(mean, std)
    whole = expected_improvement(prediction, best)
    truncated = truncated_improvement(prediction, best, ceiling)
    assert 0.0 <= truncated <= whole + 1e-12
    assert truncated >= whole * prediction.cdf(ceiling) - 1e-12  # the product form counts the uncertainty twice


@pytest.mark.parametrize("boot", [0.0, 20.0, 90.0])
@pytest.mark.parametrize("minimum", [0.0, 60.0, 150.0])
@pytest.mark.parametrize("deadline", [30.0, 110.0, np.inf])
@pytest.mark.parametrize("best", [0.4, 1.0, 3.0])
def test_billed_improvement_agrees_with_monte_carlo(boot: float, minimum: float, deadline: float, best: float) -> None:
    price = 0.01
    gains = np.maximum(best - price * np.maximum(DRAWS + boot, minimum), 0.0) * (deadline >= DRAWS)
    assert_agrees(billed_improvement(SECONDS, best, price, boot, minimum, deadline), gains)


def test_without_boot_and_minimum_it_is_the_plain_improvement_of_cost() -> None:
    price = np.array([0.01, 0.02])
    cost = LogNormal(SECONDS.mean + np.log(price), SECONDS.std)
    assert billed_improvement(SECONDS, 1.2, price) == pytest.approx(expected_improvement(cost, 1.2))


@given(st.floats(0.0, 200.0), st.floats(0.0, 200.0), st.floats(1.0, 500.0), st.floats(0.0, 5.0))
@settings(deadline=None)
def test_higher_fees_never_raise_the_improvement(boot: float, minimum: float, deadline: float, best: float) -> None:
    gain = billed_improvement(SECONDS, best, 0.01, boot, minimum, deadline)
    assert 0.0 <= gain <= best
    assert billed_improvement(SECONDS, best, 0.01, boot + 10.0, minimum, deadline) <= gain + 1e-9
    assert billed_improvement(SECONDS, best, 0.01, boot, minimum + 10.0, deadline) <= gain + 1e-9
    assert billed_improvement(SECONDS, best, 0.01, boot, minimum, deadline + 10.0) >= gain - 1e-9
