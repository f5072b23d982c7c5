"""The Gittins index solves its equation, is monotone in the cost, and handles extreme cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.acquisition.gittins import gittins_index
from lynceus.acquisition.improvement import truncated_improvement
from lynceus.models.distribution import LogNormal, Normal

families = st.sampled_from([Normal, LogNormal])


@given(families, st.floats(-5.0, 5.0), st.floats(1e-4, 4.0), st.floats(1e-12, 1e3))
@settings(deadline=None)
def test_the_improvement_below_the_index_equals_the_cost(
    family: type[Normal | LogNormal], mean: float, std: float, cost: float
) -> None:
    prediction = family(mean, std)
    assert float(prediction.log_put(gittins_index(prediction, cost))) == pytest.approx(np.log(cost), abs=1e-7)


@given(families, st.floats(-3.0, 3.0), st.floats(0.01, 3.0), st.floats(1e-6, 10.0), st.floats(-2.0, 2.0))
@settings(deadline=None)
def test_a_ceiling_counts_only_what_lies_below_it(
    family: type[Normal | LogNormal], mean: float, std: float, cost: float, z: float
) -> None:
    prediction = family(mean, std)
    ceiling = float(prediction.quantile(0.5)) + z if family is Normal else float(np.exp(mean + std * z))
    index = gittins_index(prediction, cost, ceiling=ceiling)
    assert index >= gittins_index(prediction, cost) - 1e-9
    if np.isfinite(index):
        assert float(truncated_improvement(prediction, index, ceiling)) == pytest.approx(cost, rel=1e-6)


@given(families, st.floats(-3.0, 3.0), st.floats(0.0, 3.0), st.floats(1e-6, 10.0), st.floats(1.0, 3.0))
@settings(deadline=None)
def test_more_expensive_boxes_have_higher_indices(
    family: type[Normal | LogNormal], mean: float, std: float, cost: float, more: float
) -> None:
    prediction = family(mean, std)
    cheap, expensive = gittins_index(prediction, cost), gittins_index(prediction, cost, weight=more)
    assert expensive >= cheap - 1e-9 * (1.0 + abs(cheap))


def test_the_index_agrees_with_monte_carlo() -> None:
    draws = np.random.default_rng(5).standard_normal(400_000)
    for prediction, values in ((Normal(2.0, 0.5), 2.0 + 0.5 * draws), (LogNormal(1.0, 0.4), np.exp(1.0 + 0.4 * draws))):
        gains = np.maximum(float(gittins_index(prediction, 0.05)) - values, 0.0)
        assert abs(gains.mean() - 0.05) <= 5.0 * gains.std() / np.sqrt(gains.size)


@pytest.mark.parametrize("family", [Normal, LogNormal])
def test_extreme_boxes(family: type[Normal | LogNormal]) -> None:
    known = 3.0 if family is Normal else float(np.exp(3.0))
    assert gittins_index(family(3.0, np.zeros(2)), np.array([0.0, 0.5])) == pytest.approx(
        [known, known + 0.5], abs=1e-9
    )
    assert float(gittins_index(family(3.0, 1.0), 0.0)) == (-np.inf if family is Normal else 0.0)
    costs = np.logspace(-290.0, 8.0, 40)
    indices = gittins_index(family(3.0, 1.0), costs)
    assert np.isfinite(indices).all()
    assert (np.diff(indices) > 0.0).all()
    assert float(gittins_index(family(3.0, 0.0), 1.0, ceiling=known - 1.0)) == np.inf


def test_a_negative_cost_is_an_error() -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        gittins_index(Normal(0.0, 1.0), -1.0)
