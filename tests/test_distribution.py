"""The closed forms against Monte Carlo, their tails, their order, their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from lynceus.distribution import Distribution, FloatArray, LogNormal, Normal

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
    belief, draws = family(mean, std), sample(family, mean, std)
    x, y = float(at_score(family, mean, std, z)), float(at_score(family, mean, std, z - 0.7))
    assert_agrees(belief.cdf(x), (draws <= x).astype(float))
    assert_agrees(belief.sf(x), (draws > x).astype(float))
    assert_agrees(belief.put(x), np.maximum(x - draws, 0.0))
    assert_agrees(belief.truncated_put(x, y), (x - draws) * (draws <= y))
    assert_agrees(belief.truncated_put(y, x), (y - draws) * (draws <= x))
    assert_agrees(belief.capped_mean(x), np.minimum(draws, x))
    assert_agrees(belief.mean_above(x), draws[draws > x])
    assert_agrees(belief.expectation(), draws)
    assert_agrees(belief.variance(), (draws - draws.mean()) ** 2)
    assert np.exp(belief.log_cdf(x)) == pytest.approx(float(belief.cdf(x)), rel=1e-12)
    assert np.exp(belief.log_sf(x)) == pytest.approx(float(belief.sf(x)), rel=1e-12)
    assert np.exp(belief.log_put(x)) == pytest.approx(float(belief.put(x)), rel=1e-9)


@pytest.mark.parametrize("std", [1e-9, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_tails_are_finite_and_ordered_in_logarithms(family: type[Normal | LogNormal], std: float) -> None:
    belief = family(0.0, std)
    tails = TAILS if family is Normal else TAILS[np.abs(TAILS * std) < 700.0]
    x = at_score(family, 0.0, std, tails)
    for values in (belief.log_cdf(x), belief.log_put(x), -belief.log_sf(x)):
        assert np.isfinite(values[tails < 0]).all()
        assert (np.diff(values) >= 0.0).all()
    assert (np.diff(belief.log_put(x)) > 0.0).all()
    assert (belief.mean_above(x) >= x).all()
    assert (np.diff(belief.mean_above(x)) >= 0.0).all()


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
    belief = family(mean, std)
    low, high = at_score(family, mean, max(std, 1e-6), np.sort([first, second]))
    slack = 1e-9 * (1.0 + abs(high) + abs(low))
    assert belief.cdf(low) <= belief.cdf(high)
    assert belief.put(low) <= belief.put(high) + slack
    assert belief.log_put(low) <= belief.log_put(high) + 1e-6
    assert belief.capped_mean(low) <= belief.capped_mean(high) + slack
    assert belief.put(high) >= max(0.0, float(high - belief.expectation())) - slack  # Jensen
    assert belief.put(high) - belief.put(low) <= (high - low) + slack  # the slope of a put is a probability
    assert belief.capped_mean(high) == pytest.approx(float(high - belief.put(high)), abs=float(slack))
    assert belief.truncated_put(high, low) == pytest.approx(
        float(belief.put(low) + (high - low) * belief.cdf(low)), abs=float(slack)
    )
    assert belief.mean_above(low) >= low


@given(families, means, st.floats(0.01, 3.0), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_quantile_inverts_the_distribution_function(
    family: type[Normal | LogNormal], mean: float, std: float, p: float
) -> None:
    belief = family(mean, std)
    assert float(belief.cdf(belief.quantile(p))) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize(("belief", "value"), [(Normal(2.0, 0.0), 2.0), (LogNormal(np.log(2.0), 0.0), 2.0)])
def test_zero_std_is_a_known_value(belief: Distribution, value: float) -> None:
    x = np.array([1.0, 3.0, np.inf])
    assert belief.cdf(x).tolist() == [0.0, 1.0, 1.0]
    assert belief.put(x) == pytest.approx([0.0, 1.0, np.inf])
    assert belief.log_put(x) == pytest.approx([-np.inf, 0.0, np.inf], abs=1e-12)
    assert belief.truncated_put(5.0, x) == pytest.approx([0.0, 3.0, 3.0])
    assert belief.capped_mean(x) == pytest.approx([1.0, 2.0, 2.0])
    assert belief.mean_above(x) == pytest.approx([2.0, 3.0, np.inf])
    assert belief.quantile(np.array([0.0, 0.3, 1.0])) == pytest.approx([value] * 3)
    assert float(belief.variance()) == 0.0
    assert belief.nodes(3)[0] == pytest.approx([value] * 3)


@pytest.mark.parametrize("belief", [Normal(1.0, 2.0), LogNormal(1.0, 2.0)])
def test_infinite_bounds_give_the_untruncated_values(belief: Distribution) -> None:
    assert float(belief.truncated_put(3.0, np.inf)) == pytest.approx(3.0 - float(belief.expectation()))
    assert float(belief.capped_mean(np.inf)) == pytest.approx(float(belief.expectation()))
    assert float(belief.mean_above(-np.inf)) == pytest.approx(float(belief.expectation()))
    assert float(belief.truncated_put(3.0, -np.inf)) == 0.0


@pytest.mark.parametrize("points", [1, 2, 3, 5, 9])
def test_quadrature_is_exact_for_polynomials(points: int) -> None:
    values, weights = Normal(np.array([1.0, -2.0]), np.array([0.5, 3.0])).nodes(points)
    assert values.shape == (2, points)
    assert weights.sum() == pytest.approx(1.0)
    assert values @ weights == pytest.approx([1.0, -2.0])
    if points > 1:
        assert values**2 @ weights == pytest.approx([1.25, 13.0])


def test_quadrature_of_a_log_normal_converges_to_its_mean() -> None:
    belief = LogNormal(1.0, 0.4)
    values, weights = belief.nodes(9)
    assert float(values @ weights) == pytest.approx(float(belief.expectation()), rel=1e-9)


def test_the_published_programs_quadrature_is_off_by_the_root_of_pi() -> None:
    values, weights = Normal(1.0, 0.5).authors_nodes()
    root = np.sqrt(np.pi)
    assert values == pytest.approx(np.array([1.0 - 1.7320508 * 0.5, 1.0, 1.0 + 1.7320508 * 0.5]) / root)
    assert weights == pytest.approx([0.295409, 1.181636, 0.295409], abs=1e-6)
    assert weights.sum() == pytest.approx(root)


def test_impossible_beliefs_are_refused() -> None:
    for std in (-1.0, np.nan):
        with pytest.raises(ValueError, match="std must be 0 or more"):
            Normal(0.0, std)
        with pytest.raises(ValueError, match="std must be 0 or more"):
            LogNormal(np.zeros(2), np.array([1.0, std]))
    with pytest.raises(ValueError, match="at least 1 point"):
        Normal(0.0, 1.0).nodes(0)
