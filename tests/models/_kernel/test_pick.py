"""The picked row and its acquisition value: against the twin, against quadrature, and in special cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from lynceus.models._kernel import Acquisition, Billing, Constraints, Growth, Observed, encode, native, numpy_twin, pick
from lynceus.models._kernel import _forest as compiled_module

from .strategies import Case, acquisitions, cases

NEGLIGIBLE = 1e-100
"""Acquisition values below it are not told apart."""
BOTH = pytest.mark.parametrize("kernel", [native, numpy_twin], ids=["native", "twin"])
CODES = encode(np.arange(3.0)[:, None])
SEEN = Observed([0, 2], [[1.0, 3.0]], [[[1, 1], [1, 0], [0, 1]]], [[1, 2, 3]])
GROWTH = Growth(attributes=1)


def simple(form: str = "product", **changes) -> Acquisition:
    return Acquisition(form, **{"open": [True] * 3, "best": [2.0], "worst": [3.0], "left": [np.inf], **changes})


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_compiled_and_twin_pick_the_same(data: st.DataObject) -> None:
    case: Case = data.draw(cases())
    acquisition = data.draw(acquisitions(case))
    args = (case.codes, case.observed, case.imagined, case.growth, acquisition)
    fast, slow = native.pick(*args, threads=2), numpy_twin.pick(*args)
    np.testing.assert_allclose(fast.value, slow.value, rtol=1e-8, atol=1e-12)
    # Dozens of deviations out, one implementation has 10^-317 where the other has 0, and another row may win.
    clear = ~((fast.value < NEGLIGIBLE) & (slow.value < NEGLIGIBLE) & (fast.value + slow.value > 0))
    assert fast.row[clear].tolist() == slow.row[clear].tolist()
    np.testing.assert_allclose(fast.mean[clear], slow.mean[clear], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fast.std[clear], slow.std[clear], rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_threads_change_no_bit(data: st.DataObject) -> None:
    case: Case = data.draw(cases())
    acquisition = data.draw(acquisitions(case))
    args = (case.codes, case.observed, case.imagined, case.growth, acquisition)
    one, many = native.pick(*args, threads=1), native.pick(*args, threads=4)
    for name in ("row", "value", "mean", "std"):
        assert getattr(one, name).tobytes() == getattr(many, name).tobytes()


def test_normal_functions_hold_in_the_tails() -> None:
    z = np.concatenate([np.linspace(-37, 12, 20_001), [-8.0, 8.0, 0.0]])
    cdf, hinge = np.transpose([compiled_module.normal(x) for x in z])
    np.testing.assert_allclose(cdf, ndtr(z), rtol=1e-9, atol=0)
    np.testing.assert_allclose(cdf[z > -4], ndtr(z[z > -4]), rtol=0, atol=1e-12)
    near = z > -8
    np.testing.assert_allclose(hinge[near], (z * ndtr(z) + norm.pdf(z))[near], rtol=1e-9, atol=1e-16)
    assert (hinge >= 0).all()


def test_bounds_that_skip_rows_are_bounds() -> None:
    """The two inequalities at the top of acquisition.c."""
    z = np.linspace(-38, 38, 100_001)
    r = 1 / (1 + z * z)
    assert (z * ndtr(z) + norm.pdf(z) <= np.maximum(z, 0) + norm.pdf(0) * r**2 + 1e-15).all()
    assert (ndtr(z[z < 0]) <= 0.5 * r[z < 0]).all()


@settings(max_examples=60, deadline=None)
@given(best=st.floats(-2, 2), ceiling=st.floats(-3, 3), mean=st.floats(-2, 2), std=st.floats(0.05, 3))
def test_the_exact_form_is_the_integral(best: float, ceiling: float, mean: float, std: float) -> None:
    k = min(best, ceiling)
    low = mean - 12 * std
    integral = quad(lambda c: (best - c) * norm.pdf(c, mean, std), low, k, points=[mean])[0] if k > low else 0.0
    value = numpy_twin.normal_improvement(best, np.array([k]), np.array([mean]), np.array([std]))[0]
    assert value == pytest.approx(integral, rel=1e-6, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    best=st.floats(0.5, 20),
    ceiling=st.floats(0.5, 20),
    mean=st.floats(-1, 2),
    std=st.floats(0.1, 1.5),
    boot=st.sampled_from([0.0, 1.0]),
    minimum=st.sampled_from([0.0, 0.5, 4.0]),
)
def test_the_lognormal_form_is_the_integral(best, ceiling, mean, std, boot, minimum) -> None:
    price = 1.5
    billing = Billing(np.array([price]), np.array([boot]), np.array([minimum]))
    value = numpy_twin.lognormal_improvement(best, np.array([ceiling]), np.array([mean]), np.array([std]), billing)[0]
    z = np.linspace(-9, 9, 400_001)
    time = np.exp(mean + std * z)
    improvement = np.maximum(best - price * np.maximum(time + boot, minimum), 0) * (time <= ceiling)
    assert value == pytest.approx(np.trapezoid(improvement * norm.pdf(z), z), rel=1e-3, abs=2e-4)


@BOTH
def test_the_value_of_certain_rows_is_the_plain_difference(kernel) -> None:
    certain = Observed([0, 2], [[1.0, 3.0]], np.ones((1, 2, 2), int), [[1, 2]])
    picked = kernel.pick(CODES, certain, None, GROWTH, simple())
    assert (picked.row[0], picked.value[0], picked.mean[0, 0], picked.std[0, 0]) == (0, 1.0, 1.0, 0.0)
    constrained = simple(constraints=Constraints([0], [-1], [[2.0, 2.0, 2.0]]))
    picked = kernel.pick(CODES, certain, None, GROWTH, constrained)
    assert (picked.row[0], picked.value[0]) == (0, 0.0)  # no improvement anywhere: the lowest allowed row


@BOTH
def test_closed_unaffordable_and_imagined_rows_are_not_picked(kernel) -> None:
    closed = kernel.pick(CODES, SEEN, None, GROWTH, simple(open=[False] * 3))
    assert closed.row.tolist() == [-1]
    assert np.isnan(closed.value).all()
    assert np.isnan(closed.mean).all()
    expensive = kernel.pick(CODES, SEEN, None, GROWTH, simple(left=[0.5], confidence_z=2.326))
    assert expensive.row.tolist() == [-1]
    imagined = numpy_twin.Imagined([[0]], [[[0.5]]], [[[1], [1], [1]]])
    assert kernel.pick(CODES, SEEN, imagined, GROWTH, simple()).row.tolist() == [1]


@BOTH
def test_without_a_feasible_observation_the_best_is_guessed(kernel) -> None:
    mean, std = kernel.predict(CODES, SEEN, None, GROWTH)
    guessed, unknown = simple(best=[3.0 + 3 * std.max()]), simple(best=[np.nan])
    a, b = (kernel.pick(CODES, SEEN, None, GROWTH, acquisition) for acquisition in (guessed, unknown))
    assert a.row.tolist() == b.row.tolist()
    np.testing.assert_allclose(a.value, b.value)
    assert mean.shape == (1, 3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"open": [True]}, "open has shape"),
        ({"best": [1.0, 2.0]}, "best has shape"),
        ({"left": [np.nan]}, "left must not be NaN"),
        ({"constraints": Constraints([1], [1], [[1.0, 1.0, 1.0]])}, "constraints name metrics"),
        ({"ceiling": [1.0, 1.0, 1.0]}, "takes no ceiling"),
        ({"form": "sum"}, "form is 'sum'"),
        ({"form": "lognormal"}, "billing is needed"),
    ],
)
def test_invalid_acquisition_functions_are_errors(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pick(CODES, SEEN, None, GROWTH, simple(**change))
