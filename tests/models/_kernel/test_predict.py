"""The compiled kernel against its twin, insertion against training from scratch, and the tree rule itself."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from lynceus.models._kernel import Growth, Imagined, Observed, compiled, encode, native, numpy_twin, predict

from .strategies import Case, cases

BOTH = pytest.mark.parametrize("kernel", [native, numpy_twin], ids=["native", "twin"])
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def same(a, b) -> None:
    np.testing.assert_allclose(a[0], b[0], **CLOSE)
    np.testing.assert_allclose(a[1], b[1], **CLOSE)


def one_tree(rows, target, growth=None, **changes):
    """A single tree over rows of a table, every observation once in the bag."""
    count = len(rows)
    return Observed(rows, [target], np.ones((1, 1, count), int), [[7]]), growth or Growth(attributes=1, **changes)


def test_the_compiled_kernel_was_built() -> None:
    assert compiled


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_compiled_and_twin_agree(case: Case) -> None:
    args = (case.codes, case.observed, case.imagined, case.growth)
    same(native.predict(*args, threads=2), numpy_twin.predict(*args))


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_insertion_equals_training_from_scratch(case: Case) -> None:
    imagined, seen = case.imagined, case.observed
    inserted = native.predict(case.codes, seen, imagined, case.growth)
    for b in range(imagined.b):
        everything = Observed(
            np.concatenate([seen.rows, imagined.rows[b]]),
            np.concatenate([seen.target, imagined.target[b].T], axis=1),
            np.concatenate([seen.bags, imagined.bags], axis=2),
            seen.seeds,
        )
        mean, std = native.predict(case.codes, everything, None, case.growth)
        same((mean[0], std[0]), (inserted[0][b], inserted[1][b]))


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_threads_and_neighbours_change_no_bit(case: Case) -> None:
    args = (case.codes, case.observed, case.imagined, case.growth)
    one = native.predict(*args, threads=1)
    many = native.predict(*args, threads=5)
    assert one[0].tobytes() == many[0].tobytes()
    assert one[1].tobytes() == many[1].tobytes()
    i = case.imagined
    backwards = Imagined(i.rows[::-1], i.target[::-1], i.bags)
    turned = native.predict(case.codes, case.observed, backwards, case.growth)
    assert one[0].tobytes() == np.ascontiguousarray(turned[0][::-1]).tobytes()


@pytest.mark.parametrize("min_variance", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("splits", ["best", "random"])
def test_a_large_batch_with_kept_subtrees(min_variance: float, splits: str) -> None:
    """More than 64 observations (two words), many states that share subtrees, wide and narrow features."""
    generator = np.random.default_rng(3)
    q, n, trees, b = 300, 90, 3, 120
    features = np.column_stack([generator.integers(0, 3, q), generator.integers(0, 9, q), generator.random(q)])
    codes = encode(features)
    bags = generator.multinomial(n, np.full(n, 1 / n), size=(1, trees))
    seen = Observed(generator.integers(0, q, n), generator.normal(size=(1, n)), bags, [[5, 5, 6]])
    rows = np.repeat(generator.integers(0, q, (b // 3, 2)), 3, axis=0)
    imagined = Imagined(rows, np.sort(generator.normal(size=(b, 2, 1)), axis=0), [[[1, 2], [0, 1], [2, 0]]])
    growth = Growth(attributes=2, min_variance=min_variance, splits=splits)
    chosen = np.arange(0, b, 17)
    few = Imagined(imagined.rows[chosen], imagined.target[chosen], imagined.bags)
    mean, std = native.predict(codes, seen, imagined, growth)
    same((mean[chosen], std[chosen]), numpy_twin.predict(codes, seen, few, growth))


@BOTH
def test_split_is_the_midpoint_of_least_squares(kernel) -> None:
    codes = encode([[0.0], [1.0], [4.0], [10.0], [6.9], [7.1]])
    seen, growth = one_tree([0, 1, 2, 3], [1.0, 1.2, 1.1, 9.0], min_leaf=1, min_gain=10.0)
    mean, _ = kernel.predict(codes, seen, None, growth)
    np.testing.assert_allclose(mean[0, :, 0], [1.1, 1.1, 1.1, 9.0, 1.1, 9.0])


@BOTH
def test_bag_weights_count_as_repetitions(kernel) -> None:
    codes = encode(np.arange(6.0)[:, None])
    growth = Growth(attributes=1, min_leaf=2, spread="total")
    weighted = Observed([0, 1, 5], [[1.0, 2.0, 6.0]], [[[2, 1, 3]]], [[1]])
    repeated = Observed([0, 0, 1, 5, 5, 5], [[1.0, 1.0, 2.0, 6.0, 6.0, 6.0]], np.ones((1, 1, 6), int), [[1]])
    same(kernel.predict(codes, weighted, None, growth), kernel.predict(codes, repeated, None, growth))


@BOTH
def test_among_equal_splits_the_lowest_threshold_wins(kernel) -> None:
    codes = encode(np.arange(4.0)[:, None])
    seen, growth = one_tree([0, 1, 2], [0.0, 1.0, 0.0], min_gain=0.1, min_leaf=1)
    mean, _ = kernel.predict(codes, seen, None, Growth(attributes=1, min_gain=0.3, min_leaf=1))
    assert mean[0, :, 0].tolist() == pytest.approx([1 / 3] * 4)  # both cuts reduce the sum of squares by 1/6
    mean, _ = kernel.predict(codes, seen, None, growth)
    assert mean[0, 0, 0] == 0.0
    assert mean[0, 1, 0] == 1.0


@BOTH
def test_total_spread_adds_the_variance_inside_leaves(kernel) -> None:
    codes = encode([[0.0], [1.0]])
    seen = Observed([0, 0, 0], [[1.0, 2.0, 3.0]], np.ones((1, 2, 3), int), [[1, 2]])
    _, std = kernel.predict(codes, seen, None, Growth(attributes=1, spread="total"))
    np.testing.assert_allclose(std, np.sqrt(2 / 3))
    _, std = kernel.predict(codes, seen, None, Growth(attributes=1, spread="between"))
    assert (std == 0).all()


@BOTH
@pytest.mark.parametrize("weight", [1, 7, 49])
def test_trees_that_agree_have_a_deviation_of_exactly_zero(kernel, weight: int) -> None:
    codes = encode(np.arange(3.0)[:, None])
    bags = np.array([[[1, 1], [weight, 3], [11, weight]]])
    seen = Observed([0, 2], [[0.1, 0.7]], bags, [[1, 2, 3]])
    _, std = kernel.predict(codes, seen, None, Growth(attributes=1))
    assert (std == 0).all()


@BOTH
@pytest.mark.parametrize("q", [1, 64, 65])
def test_degenerate_problems(kernel, q: int) -> None:
    codes = encode(np.zeros((q, 1)))
    constant = Observed([0, q - 1, 0], np.full((1, 3), 4.5), np.ones((1, 2, 3), int), [[1, 2]])
    mean, std = kernel.predict(codes, constant, None, Growth(attributes=1))
    assert (mean == 4.5).all()
    assert (std == 0).all()
    empty = Observed([0, 0], [[1.0, 3.0]], np.zeros((1, 2, 2), int), [[1, 2]])
    imagined = Imagined([[0]], [[[8.0]]], [[[0], [1]]])
    mean, _ = kernel.predict(codes, empty, imagined, Growth(attributes=3))
    np.testing.assert_allclose(mean, (4.0 + 8.0) / 2)  # an empty bag: the plain mean of 1, 3 and 8


@BOTH
def test_no_state_gives_empty_predictions(kernel) -> None:
    codes = encode([[0.0], [1.0]])
    seen = Observed([0], [[1.0]], [[[1]]], [[1]])
    mean, std = kernel.predict(codes, seen, Imagined(np.zeros((0, 1), int), np.zeros((0, 1, 1)), [[[1]]]), Growth(1))
    assert mean.shape == std.shape == (0, 2, 1)


def test_a_table_too_large_for_bit_sets() -> None:
    generator = np.random.default_rng(0)
    codes = encode(generator.random((20_000, 2)))
    assert len(codes.below) == 0
    seen = Observed(np.arange(30), generator.random((1, 30)), generator.poisson(1, (1, 2, 30)), [[1, 2]])
    imagined = Imagined([[40], [50]], [[[0.3]], [[0.9]]], [[[1], [2]]])
    same(predict(codes, seen, imagined, Growth(2)), numpy_twin.predict(codes, seen, imagined, Growth(2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [0, 9]}, "rows go from 0 to 9"),
        ({"rows": [0, -1]}, "rows go from -1"),
        ({"target": [[1.0]]}, "target has shape"),
        ({"target": [[1.0, np.nan]]}, "NaN"),
        ({"bags": [[[1, -1]]]}, "weights from -1"),
        ({"bags": [[[1.5, 1.0]]]}, "type float64"),
        ({"seeds": [[1, 2]]}, "seeds has shape"),
    ],
)
def test_invalid_observations_are_errors(change: dict, message: str) -> None:
    good = {"rows": [0, 1], "target": [[1.0, 2.0]], "bags": [[[1, 1]]], "seeds": [[1]]}
    with pytest.raises(ValueError, match=message):
        predict(encode([[0.0], [1.0]]), Observed(**{**good, **change}), None, Growth(1))


def test_imagined_observations_for_other_trees_are_an_error() -> None:
    seen = Observed([0, 1], [[1.0, 2.0]], [[[1, 1]]], [[1]])
    with pytest.raises(ValueError, match="imagined observations are for"):
        predict(encode([[0.0], [1.0]]), seen, Imagined([[0]], [[[1.0]]], [[[1], [1]]]), Growth(1))


def test_invalid_growth_and_features_are_errors() -> None:
    with pytest.raises(ValueError, match="min_leaf 0"):
        Growth(attributes=1, min_leaf=0)
    with pytest.raises(ValueError, match="splits 'worst'"):
        Growth(attributes=1, splits="worst")
    with pytest.raises(ValueError, match="NaN"):
        encode([[np.nan]])
    with pytest.raises(ValueError, match="expected \\[q,d\\]"):
        encode([1.0, 2.0])


def test_without_the_extension_the_twin_is_used_with_one_warning() -> None:
    program = """
import sys, warnings
sys.modules["lynceus.models._kernel._forest"] = None
from lynceus.models import _kernel as kernel
assert not kernel.compiled
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        seen = kernel.Observed([0], [[1.0]], [[[1]]], [[1]])
        mean, _ = kernel.predict(kernel.encode([[0.0], [1.0]]), seen, None, kernel.Growth(1))
assert mean.ravel().tolist() == [1.0, 1.0]
print(*(str(one.message) for one in caught), sep="|")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("|") == 0
    assert "NumPy twin is used" in done.stdout
