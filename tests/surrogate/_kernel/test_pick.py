"""The picked row and its gain: against the twin, against quadrature, and in the corners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from lynceus.surrogate._kernel import Billing, Gain, Growth, Limits, Observed, encode, native, pick, twin
from lynceus.surrogate._kernel import _forest as compiled_module

from .strategies import Case, cases, gains

BOTH = pytest.mark.parametrize("kernel", [native, twin], ids=["native", "twin"])
CODES = encode(np.arange(3.0)[:, None])
SEEN = Observed([0, 2], [[1.0, 3.0]], [[[1, 1], [1, 0], [0, 1]]], [[1, 2, 3]])
GROWTH = Growth(attributes=1)


def simple(form: str = "product", **changes) -> Gain:
    return Gain(form, **{"open": [True] * 3, "best": [2.0], "worst": [3.0], "left": [np.inf], **changes})


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_compiled_and_twin_pick_the_same(data: st.DataObject) -> None:
    case: Case = data.draw(cases())
    gain = data.draw(gains(case))
    args = (case.codes, case.observed, case.imagined, case.growth, gain)
    fast, slow = native.pick(*args, threads=2), twin.pick(*args)
    assert fast.row.tolist() == slow.row.tolist()
    np.testing.assert_allclose(fast.gain, slow.gain, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fast.std, slow.std, rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_threads_change_no_bit(data: st.DataObject) -> None:
    case: Case = data.draw(cases())
    gain = data.draw(gains(case))
    args = (case.codes, case.observed, case.imagined, case.growth, gain)
    one, many = native.pick(*args, threads=1), native.pick(*args, threads=4)
    for name in ("row", "gain", "mean", "std"):
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
    """The two inequalities at the top of gain.c."""
    z = np.linspace(-38, 38, 100_001)
    r = 1 / (1 + z * z)
    assert (z * ndtr(z) + norm.pdf(z) <= np.maximum(z, 0) + norm.pdf(0) * r**2 + 1e-15).all()
    assert (ndtr(z[z < 0]) <= 0.5 * r[z < 0]).all()


@settings(max_examples=60, deadline=None)
@given(best=st.floats(-2, 2), ceiling=st.floats(-3, 3), mean=st.floats(-2, 2), std=st.floats(0.05, 3))
def test_exact_gain_is_the_integral(best: float, ceiling: float, mean: float, std: float) -> None:
    k = min(best, ceiling)
    low = mean - 12 * std
    integral = quad(lambda c: (best - c) * norm.pdf(c, mean, std), low, k, points=[mean])[0] if k > low else 0.0
    gain = twin.normal_gain(best, np.array([k]), np.array([mean]), np.array([std]))[0]
    assert gain == pytest.approx(integral, rel=1e-6, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    best=st.floats(0.5, 20),
    ceiling=st.floats(0.5, 20),
    mean=st.floats(-1, 2),
    std=st.floats(0.1, 1.5),
    boot=st.sampled_from([0.0, 1.0]),
    minimum=st.sampled_from([0.0, 0.5, 4.0]),
)
def test_lognormal_gain_is_the_integral(best, ceiling, mean, std, boot, minimum) -> None:
    price = 1.5
    billing = Billing(np.array([price]), np.array([boot]), np.array([minimum]))
    gain = Gain("lognormal", [True], [best], [0.0], [np.inf], billing=billing)
    value = twin.lognormal_gain(best, np.array([ceiling]), np.array([mean]), np.array([std]), gain)[0]
    z = np.linspace(-9, 9, 400_001)
    time = np.exp(mean + std * z)
    worth = np.maximum(best - price * np.maximum(time + boot, minimum), 0) * (time <= ceiling)
    assert value == pytest.approx(np.trapezoid(worth * norm.pdf(z), z), rel=1e-3, abs=2e-4)


@BOTH
def test_gain_of_certain_rows_is_the_plain_difference(kernel) -> None:
    certain = Observed([0, 2], [[1.0, 3.0]], np.ones((1, 2, 2), int), [[1, 2]])
    picked = kernel.pick(CODES, certain, None, GROWTH, simple())
    assert (picked.row[0], picked.gain[0], picked.mean[0, 0], picked.std[0, 0]) == (0, 1.0, 1.0, 0.0)
    limited = simple(limits=Limits([0], [-1], [[2.0, 2.0, 2.0]]))
    picked = kernel.pick(CODES, certain, None, GROWTH, limited)
    assert (picked.row[0], picked.gain[0]) == (0, 0.0)  # nothing gained anywhere: the lowest allowed row
    picked = kernel.pick(CODES, certain, None, GROWTH, simple(zero_sigma_factor=10.0))
    assert picked.std[0, 0] == 10 * picked.mean[0, 0]


@BOTH
def test_closed_dear_and_imagined_rows_are_not_picked(kernel) -> None:
    closed = kernel.pick(CODES, SEEN, None, GROWTH, simple(open=[False] * 3))
    assert closed.row.tolist() == [-1]
    assert np.isnan(closed.gain).all()
    assert np.isnan(closed.mean).all()
    dear = kernel.pick(CODES, SEEN, None, GROWTH, simple(left=[0.5], sure_z=2.326))
    assert dear.row.tolist() == [-1]
    imagined = twin.Imagined([[0]], [[[0.5]]], [[[1], [1], [1]]])
    assert kernel.pick(CODES, SEEN, imagined, GROWTH, simple()).row.tolist() == [1]


@BOTH
def test_without_a_feasible_observation_worst_and_spread_stand_in(kernel) -> None:
    mean, std = kernel.believe(CODES, SEEN, None, GROWTH)
    for root in (False, True):
        largest = np.sqrt(std.max()) if root else std.max()
        stand_in = simple(best=[3.0 + 3 * largest])
        nothing = simple(best=[np.nan], root_sigma=root)
        a, b = (kernel.pick(CODES, SEEN, None, GROWTH, gain) for gain in (stand_in, nothing))
        assert a.row.tolist() == b.row.tolist()
        np.testing.assert_allclose(a.gain, b.gain)
    assert mean.shape == (1, 3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"open": [True]}, "open has shape"),
        ({"best": [1.0, 2.0]}, "best has shape"),
        ({"left": [np.nan]}, "left must not be NaN"),
        ({"limits": Limits([1], [1], [[1.0, 1.0, 1.0]])}, "limits name metrics"),
        ({"ceiling": [1.0, 1.0, 1.0]}, "takes no ceiling"),
        ({"form": "sum"}, "form is 'sum'"),
        ({"form": "lognormal"}, "billing is needed"),
    ],
)
def test_bad_gains_are_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pick(CODES, SEEN, None, GROWTH, simple(**change))
