"""Improvement and cost of billed runs against Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.acquisition import billed_cost, billed_improvement, expected_improvement, log_billed_improvement
from lynceus.distribution import LogNormal

SECONDS = LogNormal(np.log(100.0), 0.7)
DRAWS = np.exp(np.log(100.0) + 0.7 * np.random.default_rng(11).standard_normal(400_000))


@pytest.mark.parametrize("boot", [0.0, 20.0, 90.0])
@pytest.mark.parametrize("minimum", [0.0, 60.0, 150.0])
@pytest.mark.parametrize("deadline", [30.0, 110.0, np.inf])
@pytest.mark.parametrize("best", [0.4, 1.0, 3.0])
def test_billed_improvement_agrees_with_monte_carlo(boot: float, minimum: float, deadline: float, best: float) -> None:
    price = 0.01
    gains = np.maximum(best - price * np.maximum(DRAWS + boot, minimum), 0.0) * (deadline >= DRAWS)
    exact = float(billed_improvement(SECONDS, best, price, boot, minimum, deadline))
    assert abs(exact - gains.mean()) <= 5.0 * gains.std() / np.sqrt(gains.size) + 1e-12
    logarithm = float(log_billed_improvement(SECONDS, best, price, boot, minimum, deadline))
    assert np.exp(logarithm) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("boot", [0.0, 20.0])
@pytest.mark.parametrize("minimum", [0.0, 60.0, 150.0])
@pytest.mark.parametrize("cap", [30.0, 110.0, np.inf])
def test_billed_cost_agrees_with_monte_carlo(boot: float, minimum: float, cap: float) -> None:
    bills = 0.01 * np.maximum(np.minimum(DRAWS, cap) + boot, minimum)
    exact = float(billed_cost(SECONDS, 0.01, boot, minimum, cap))
    assert abs(exact - bills.mean()) <= 5.0 * bills.std() / np.sqrt(bills.size) + 1e-12


def test_without_boot_and_minimum_it_is_the_plain_improvement_of_cost() -> None:
    price = np.array([0.01, 0.02])
    cost = LogNormal(SECONDS.mean + np.log(price), SECONDS.std)
    assert billed_improvement(SECONDS, 1.2, price) == pytest.approx(expected_improvement(cost, 1.2))
    assert billed_cost(SECONDS, price) == pytest.approx(cost.expectation())


def test_the_logarithm_survives_where_the_improvement_underflows() -> None:
    slow = LogNormal(np.log(100.0) + np.array([0.0, 30.0, 40.0, 50.0]), 0.7)
    logs = log_billed_improvement(slow, 0.5, 0.01, 5.0, 20.0, 60.0)
    assert np.isfinite(logs).all()
    assert (np.diff(logs) < 0.0).all()
    assert float(billed_improvement(slow, 0.5, 0.01, 5.0, 20.0, 60.0)[-1]) == 0.0


@given(st.floats(0.0, 200.0), st.floats(0.0, 200.0), st.floats(1.0, 500.0), st.floats(0.0, 5.0))
@settings(deadline=None)
def test_more_fees_never_help(boot: float, minimum: float, deadline: float, best: float) -> None:
    gain = billed_improvement(SECONDS, best, 0.01, boot, minimum, deadline)
    assert 0.0 <= gain <= best
    assert billed_improvement(SECONDS, best, 0.01, boot + 10.0, minimum, deadline) <= gain + 1e-9
    assert billed_improvement(SECONDS, best, 0.01, boot, minimum + 10.0, deadline) <= gain + 1e-9
    assert billed_improvement(SECONDS, best, 0.01, boot, minimum, deadline + 10.0) >= gain - 1e-9
