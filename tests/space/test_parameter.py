"""Parameters and the values they list."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (Categorical("a", ["x", True, 3]), ("x", True, 3)),
        (Ordinal("a", np.array([4, 2])), (4, 2)),
        (Integer("a", 1, 4), (1, 2, 3, 4)),
        (Integer("a", 1, 10, step=4), (1, 5, 9)),
        (Integer("a", 5, 5), (5,)),
        (Integer("a", 1, 64, log=True, steps=7), (1, 2, 4, 8, 16, 32, 64)),
        (Integer("a", 1, 4, log=True, steps=6), (1, 2, 3, 4)),
        (Integer("a", 0, 10, steps=3), (0, 5, 10)),
        (Integer("a", values=[8.0, 2]), (8, 2)),
        (Float("a", 0.1, 0.7, step=0.1), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
        (Float("a", 0, 1, steps=5), (0.0, 0.25, 0.5, 0.75, 1.0)),
        (Float("a", 1e-4, 1e-1, log=True, steps=4), (0.0001, 0.001, 0.01, 0.1)),
        (Float("a", values=(1, 0.5)), (1.0, 0.5)),
    ],
)
def test_values(parameter, values):
    assert parameter.values == values
    assert [type(value) for value in parameter.values] == [type(value) for value in values]
    assert pickle.loads(pickle.dumps(parameter)) == parameter
    assert dataclasses.replace(parameter, name="b").values == values
    assert hash(parameter) == hash(dataclasses.replace(parameter))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Categorical("p", []), "'p' has no values"),
        (lambda: Categorical("p", "abc"), "values is 'abc', but a list"),
        (lambda: Categorical("p", None), "but a list is needed"),
        (lambda: Categorical("p", ["a", "b", "a"]), "'a' is listed twice"),
        (lambda: Categorical("p", [1, True]), "true is listed and equals 1"),
        (lambda: Categorical("p", ["a", None]), "means 'inactive'"),
        (lambda: Categorical("p", [["a"]]), "a value is a list, but"),
        (lambda: Categorical("p", ["\ud800", "a"]), "a character that cannot be stored"),
        (lambda: Ordinal("p", ["a\0"]), "a character that cannot be stored"),
        (lambda: Ordinal("p", [1.0, math.nan]), "a value is nan"),
        (lambda: Ordinal("p", [10**400]), "an enormous integer"),
        (lambda: Categorical("", ["a"]), "name is ''"),
        (lambda: Categorical(" p", ["a"]), "without blanks"),
        (lambda: Categorical(7, ["a"]), "name is 7"),
        (lambda: Categorical("p", ["a"], when=""), "'when' is ''"),
        (lambda: Integer("p", 4, 1), "low 4 is above high 1"),
        (lambda: Integer("p", 0, 8, log=True, steps=3), "starts above 0"),
        (lambda: Integer("p", 1, 8, log=True), "needs steps"),
        (lambda: Integer("p", 1, 8, step=1, steps=8), "both step and steps"),
        (lambda: Integer("p", 1, 8, step=0), "step 0 must be above 0"),
        (lambda: Integer("p", 1, 8, step=0.5), "1.5 is not a whole number"),
        (lambda: Integer("p", 1.5, 8, steps=2), "must be whole numbers"),
        (lambda: Integer("p", 1, 8, steps=1), "cannot reach"),
        (lambda: Integer("p", 1, 8, steps=0), "at least 1"),
        (lambda: Integer("p", 1, 10**9), "more than 1,000,000 values"),
        (lambda: Integer("p", 1), "give low and high"),
        (lambda: Integer("p"), "give low and high"),
        (lambda: Integer("p", "1", 8), "low is '1', but a number"),
        (lambda: Integer("p", 1, math.inf), "high is inf"),
        (lambda: Integer("p", 1, 3, values=[1, 2]), "both values and a range"),
        (lambda: Integer("p", values=[1, 2.5]), "2.5 is not a whole number"),
        (lambda: Integer("p", values=[]), "has no values"),
        (lambda: Integer("p", values=[0, 1], log=True), "the value 0"),
        (lambda: Float("p", 0, 1), "give step"),
        (lambda: Float("p", 0, 1, step=-0.1), "must be above 0"),
        (lambda: Float("p", 1, 1 + 1e-13, steps=3), "do not fit"),
        (lambda: Float("p", values=["a"]), "'a' is not a number"),
        (lambda: Float("p", values=[True]), "true is not a number"),
        (lambda: Float("p", values=3), "but a list is needed"),
        (lambda: Float("p", -1, 1, log=True, steps=3), "starts above 0"),
    ],
)
def test_an_error_names_the_parameter_and_the_fix(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)
    assert "'p'" in str(caught.value) or "name" in str(caught.value)


@given(st.integers(-1000, 1000), st.integers(0, 300), st.integers(1, 20))
def test_a_stepped_integer_is_a_python_range(low, width, step):
    assert Integer("a", low, low + width, step=step).values == tuple(range(low, low + width + 1, step))


@given(st.floats(1e-6, 1e3), st.floats(1.5, 1e6), st.integers(2, 40))
def test_a_log_range_has_equal_ratios_and_its_ends(low, factor, steps):
    values = Float("a", low, low * factor, log=True, steps=steps).values
    ratios = np.diff(np.log(values))
    assert len(values) == steps
    assert values[0] == pytest.approx(low)
    assert values[-1] == pytest.approx(low * factor)
    assert ratios == pytest.approx(np.full(steps - 1, np.log(factor) / (steps - 1)), rel=1e-6)
