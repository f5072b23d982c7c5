"""Enumeration against a product by brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.space.enumeration import MOST_COMBINATIONS, enumerate_codes
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal
from lynceus.space.table import Space


@st.composite
def parameter_lists(draw):
    """Up to five parameters, some of them conditional on those before."""
    made = []
    for index in range(draw(st.integers(1, 5))):
        values = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True))
        when = None
        if made and draw(st.booleans()):
            other = draw(st.sampled_from(made))
            operator = draw(st.sampled_from(["==", "!=", "<", ">="]))
            when = f"{other.name} {operator} {draw(st.integers(0, 6))}"
            if draw(st.booleans()):
                when = f"{when} or {draw(st.sampled_from(made)).name} is None"
        kind = draw(st.sampled_from([Categorical, Ordinal]))
        made.append(kind(f"p{index}", values, when=when))
    return made


def by_brute_force(parameters, forbid=()):
    """Every point once, in the order of the product; None is inactive."""
    points = {}
    for combination in itertools.product(*(parameter.values for parameter in parameters)):
        point = {}
        for parameter, value in zip(parameters, combination, strict=True):
            active = parameter.when is None or python_truth(parameter.when, point)
            point[parameter.name] = value if active else None
        if not any(python_truth(text, point) for text in forbid):
            points[tuple(point.values())] = None
    return [dict(zip((p.name for p in parameters), values, strict=True)) for values in points]


class Inactive:
    """None as expressions understand it: unequal to all values, and in no order."""

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return True

    __lt__ = __gt__ = __le__ = __ge__ = __eq__
    __hash__ = object.__hash__


def python_truth(text, point):
    shown = {name: Inactive() if value is None else value for name, value in point.items()}
    for name, value in point.items():  # 'is None' is about the value itself
        text = text.replace(f"{name} is None", str(value is None))
    return bool(eval(text, {"__builtins__": {}}, shown))


@settings(max_examples=150, deadline=None)
@given(parameter_lists())
def test_rows_are_those_of_the_product_with_inactive_parameters_collapsed(parameters):
    space = Space.build(parameters, price=1)
    expected = by_brute_force(parameters)
    assert len(space) == len(expected)
    for row, point in enumerate(expected):
        assert {name: space.column(name).tolist()[row] for name in point} == point
        assert space.point(row) == {name: value for name, value in point.items() if value is not None}
        assert space.row(point) == row
        assert space.row(space.point(row)) == row


@settings(max_examples=100, deadline=None)
@given(parameter_lists(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=3))
def test_forbidden_rows_are_removed_and_the_order_stays(parameters, pairs):
    forbid = [f"{parameters[index % len(parameters)].name} > {value}" for index, value in pairs]
    expected = by_brute_force(parameters, forbid)
    if not expected:
        with pytest.raises(InputError, match="removes the last"):
            Space.build(parameters, forbid=forbid, price=1)
        return
    space = Space.build(parameters, forbid=forbid, price=1)
    assert [space.point(row) for row in range(len(space))] == [
        {name: value for name, value in point.items() if value is not None} for point in expected
    ]


def test_a_hundred_thousand_configurations():
    parameters = [
        Categorical("vm", [f"m{number}" for number in range(50)]),
        Integer("nodes", 1, 50),
        Ordinal("cores", [1, 2, 4, 8]),
        Float("share", 0.1, 0.9, step=0.1),
        Integer("spare", 1, 2, when="share > 0.85"),
    ]
    space = Space.build(parameters, forbid=["cores * nodes > 160"], price="nodes * 0.1")
    allowed = sum(cores * nodes <= 160 for cores in (1, 2, 4, 8) for nodes in range(1, 51))
    assert len(space) == allowed * 50 * (8 + 2)
    rows = np.random.default_rng(1).integers(0, len(space), 20)
    assert [space.row(space.point(int(row))) for row in rows] == rows.tolist()


def test_conditions_keep_a_space_small_that_would_be_huge_without_them():
    engine = Categorical("engine", [f"e{number}" for number in range(20)])
    owned = [Integer(f"knob{number}", 1, 100, when=f"engine == 'e{number}'") for number in range(20)]
    assert len(enumerate_codes([engine, *owned])) == 20 * 100


def test_too_many_combinations_are_an_error_before_they_are_made():
    parameters = [Integer(f"p{number}", 1, 1000) for number in range(6)]
    with pytest.raises(InputError, match=r"more than 5,000,000 combinations: p0 \(1,000\) x p1"):
        Space.build(parameters, price=1)
    assert MOST_COMBINATIONS == 5_000_000


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ([], "at least one parameter"),
        (["vm"], "'vm' is not a parameter"),
        ([Integer("a", 1, 2), Integer("a", 1, 2)], "Two parameters are named 'a'"),
        ([Integer("a", 1, 2, when="b > 1"), Integer("b", 1, 2)], "is not listed before it"),
        ([Integer("a", 1, 2, when="a > 1")], "is not listed before it"),
        ([Integer("nodes", 1, 2), Integer("b", 1, 2, when="node > 1")], "Did you mean 'nodes'?"),
        ([Integer("a", 1, 2), Integer("b", 1, 2, when="a >")], "Parameter 'b': when 'a >' cannot be read"),
        ([Integer("a", 1, 2), Integer("b", 1, 2, when="a > 'x'")], "orders a text against a number"),
    ],
)
def test_errors_in_parameter_lists(parameters, words):
    with pytest.raises(InputError) as caught:
        Space.build(parameters, price=1)
    assert words in str(caught.value)
