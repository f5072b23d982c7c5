"""The closed forms against Monte Carlo, in the tails, in order, and at std = 0."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from lynceus.models.distribution import Distribution, LogNormal, Normal
from lynceus.space.column import FloatArray

FAMILIES = (Normal, LogNormal)
DRAWS = 400_000
TAILS = np.array([-1e6, -1e3, -101.0, -99.0, -40.0, -8.0, -1.001, -0.999, 0.0, 1.0, 8.0, 40.0])

means = st.floats(-5.0, 5.0)
stds = st.one_of(st.just(0.0), st.floats(1e-6, 4.0))
scores = st.floats(-45.0, 45.0)
families = st.sampled_from(FAMILIES)


def sample(family: type[Normal | LogNormal], mean: float, std: float) -> FloatArray:
    draws = mean + std * np.random.default_rng(7).standard_normal(DRAWS)
    return draws if family is Normal else np.exp(draws)


def at_score(family: type[Normal | LogNormal], mean: float, std: float, z: float | FloatArray) -> FloatArray:
    """The value whose standardised form is z."""
    return np.asarray(mean + std * z if family is Normal else np.exp(mean + std * z))


def assert_agrees(exact: FloatArray, draws: FloatArray) -> None:
    error = draws.std() / np.sqrt(draws.size)
    assert abs(float(exact) - draws.mean()) <= 5.0 * error + 1e-12


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (1.5, 0.3), (-0.7, 0.8)])
@pytest.mark.parametrize("z", [-2.0, -0.3, 0.0, 1.4])
def test_closed_forms_agree_with_monte_carlo(
    family: type[Normal | LogNormal], mean: float, std: float, z: float
) -> None:
    prediction, draws = family(mean, std), sample(family, mean, std)
    x, y = float(at_score(family, mean, std, z)), float(at_score(family, mean, std, z - 0.7))
    assert_agrees(prediction.cdf(x), (draws <= x).astype(float))
    assert_agrees(prediction.sf(x), (draws > x).astype(float))
    assert_agrees(prediction.put(x), np.maximum(x - draws, 0.0))
    assert_agrees(prediction.truncated_put(x, y), (x - draws) * (draws <= y))
    assert_agrees(prediction.truncated_put(y, x), (y - draws) * (draws <= x))
    assert_agrees(prediction.capped_mean(x), np.minimum(draws, x))
    assert_agrees(prediction.mean_above(x), draws[draws > x])
    assert_agrees(prediction.expectation(), draws)
    assert np.exp(prediction.log_cdf(x)) == pytest.approx(float(prediction.cdf(x)), rel=1e-12)
    assert np.exp(prediction.log_put(x)) == pytest.approx(float(prediction.put(x)), rel=1e-9)


@pytest.mark.parametrize("std", [1e-9, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_tails_are_finite_and_ordered_in_logarithms(family: type[Normal | LogNormal], std: float) -> None:
    prediction = family(0.0, std)
    tails = TAILS if family is Normal else TAILS[np.abs(TAILS * std) < 700.0]
    x = at_score(family, 0.0, std, tails)
    for values in (prediction.log_cdf(x), prediction.log_put(x)):
        assert np.isfinite(values[tails < 0]).all()
        assert (np.diff(values) >= 0.0).all()
    assert (np.diff(prediction.log_put(x)) > 0.0).all()
    assert (prediction.mean_above(x) >= x).all()
    assert (np.diff(prediction.mean_above(x)) >= 0.0).all()


@pytest.mark.parametrize("z", [-40.0, -60.0, -99.0, -101.0, -300.0])
def test_log_put_in_the_tail_agrees_with_an_integral(z: float) -> None:
    # put = ∫ Φ(u) du up to z; with u = z - t/|z| the integrand is Φ(z) times a decaying function of order 1.
    normal = Normal(0.0, 1.0)
    log_cdf = float(normal.log_cdf(z))
    share, _ = integrate.quad(lambda t: np.exp(float(normal.log_cdf(z - t / abs(z))) - log_cdf), 0.0, 60.0)
    assert float(normal.log_put(z)) == pytest.approx(log_cdf + np.log(share / abs(z)), rel=1e-9)


@pytest.mark.parametrize(("z", "std"), [(-40.0, 0.5), (-12.0, 2.0), (-3.0, 1e-5), (-1.0, 1e-8), (-200.0, 1e-3)])
def test_log_normal_put_in_the_tail_agrees_with_an_integral(z: float, std: float) -> None:
    # put = std ∫ e^(std u) Φ(u) du up to z, for mean 0.
    log_cdf = float(Normal(0.0, 1.0).log_cdf(z))

    def integrand(t: float) -> float:
        u = z - t / max(1.0, abs(z))
        return float(np.exp(std * (u - z) + float(Normal(0.0, 1.0).log_cdf(u)) - log_cdf))

    share, _ = integrate.quad(integrand, 0.0, 60.0)
    expected = np.log(std) + std * z + log_cdf + np.log(share / max(1.0, abs(z)))
    assert float(LogNormal(0.0, std).log_put(np.exp(std * z))) == pytest.approx(expected, abs=2e-7 * abs(expected))


def test_truncated_mean_far_above_the_bulk_follows_the_asymptotic_series() -> None:
    z = np.array([40.0, 1e3, 1e6])
    excess = Normal(0.0, 1.0).mean_above(z) - z
    assert excess == pytest.approx(1.0 / z - 2.0 / z**3, rel=1e-3)
    assert Normal(5.0, 2.0).mean_above(5.0 - 2.0 * z) == pytest.approx(5.0)
    ratio = LogNormal(0.0, 0.5).mean_above(np.exp(0.5 * 40.0)) / np.exp(0.5 * 40.0)
    assert ratio == pytest.approx(1.0 + 0.5 / 40.0, rel=1e-3)


@given(families, means, stds, scores, scores)
@settings(deadline=None)
def test_order_and_identities(
    family: type[Normal | LogNormal], mean: float, std: float, first: float, second: float
) -> None:
    prediction = family(mean, std)
    low, high = at_score(family, mean, max(std, 1e-6), np.sort([first, second]))
    slack = 1e-9 * (1.0 + abs(high) + abs(low))
    assert prediction.cdf(low) <= prediction.cdf(high)
    assert prediction.put(low) <= prediction.put(high) + slack
    assert prediction.log_put(low) <= prediction.log_put(high) + 1e-6
    assert prediction.capped_mean(low) <= prediction.capped_mean(high) + slack
    assert prediction.put(high) >= max(0.0, float(high - prediction.expectation())) - slack  # Jensen
    assert prediction.put(high) - prediction.put(low) <= (high - low) + slack  # the slope of a put is a probability
    assert prediction.capped_mean(high) == pytest.approx(float(high - prediction.put(high)), abs=float(slack))
    assert prediction.truncated_put(high, low) == pytest.approx(
        float(prediction.put(low) + (high - low) * prediction.cdf(low)), abs=float(slack)
    )
    assert prediction.mean_above(low) >= low


@given(families, means, st.floats(0.01, 3.0), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_quantile_inverts_the_distribution_function(
    family: type[Normal | LogNormal], mean: float, std: float, p: float
) -> None:
    prediction = family(mean, std)
    assert float(prediction.cdf(prediction.quantile(p))) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize(("prediction", "value"), [(Normal(2.0, 0.0), 2.0), (LogNormal(np.log(2.0), 0.0), 2.0)])
def test_zero_std_is_a_known_value(prediction: Distribution, value: float) -> None:
    x = np.array([1.0, 3.0, np.inf])
    assert prediction.cdf(x).tolist() == [0.0, 1.0, 1.0]
    assert prediction.put(x) == pytest.approx([0.0, 1.0, np.inf])
    assert prediction.log_put(x) == pytest.approx([-np.inf, 0.0, np.inf], abs=1e-12)
    assert prediction.truncated_put(5.0, x) == pytest.approx([0.0, 3.0, 3.0])
    assert prediction.capped_mean(x) == pytest.approx([1.0, 2.0, 2.0])
    assert prediction.mean_above(x) == pytest.approx([2.0, 3.0, np.inf])
    assert prediction.quantile(np.array([0.0, 0.3, 1.0])) == pytest.approx([value] * 3)
    assert prediction.nodes(3)[0] == pytest.approx([value] * 3)


@pytest.mark.parametrize("prediction", [Normal(1.0, 2.0), LogNormal(1.0, 2.0)])
def test_infinite_bounds_give_the_untruncated_values(prediction: Distribution) -> None:
    assert float(prediction.truncated_put(3.0, np.inf)) == pytest.approx(3.0 - float(prediction.expectation()))
    assert float(prediction.capped_mean(np.inf)) == pytest.approx(float(prediction.expectation()))
    assert float(prediction.mean_above(-np.inf)) == pytest.approx(float(prediction.expectation()))
    assert float(prediction.truncated_put(3.0, -np.inf)) == 0.0


@pytest.mark.parametrize("points", [1, 2, 3, 5, 9])
def test_quadrature_is_exact_for_polynomials(points: int) -> None:
    values, weights = Normal(np.array([1.0, -2.0]), np.array([0.5, 3.0])).nodes(points)
    assert values.shape == (2, points)
    assert weights.sum() == pytest.approx(1.0)
    assert values @ weights == pytest.approx([1.0, -2.0])
    if points > 1:
        assert values**2 @ weights == pytest.approx([1.25, 13.0])


def test_quadrature_of_a_log_normal_converges_to_its_mean() -> None:
    prediction = LogNormal(1.0, 0.4)
    values, weights = prediction.nodes(9)
    assert float(values @ weights) == pytest.approx(float(prediction.expectation()), rel=1e-9)


def test_invalid_distributions_are_errors() -> None:
    for std in (-1.0, np.nan):
        with pytest.raises(ValueError, match="std must be 0 or more"):
            Normal(0.0, std)
        with pytest.raises(ValueError, match="std must be 0 or more"):
            LogNormal(np.zeros(2), np.array([1.0, std]))
    with pytest.raises(ValueError, match="at least 1 point"):
        Normal(0.0, 1.0).nodes(0)
