"""Parsing and formatting of durations and money."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.units import format_duration, format_money, format_number, parse_duration, parse_money


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45m", 2700),
        ("1h30m", 5400),
        ("1h 30 min", 5400),
        ("90s", 90),
        ("2d", 172800),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (" 90 ", 90),
        (90, 90),
        (0.5, 0.5),
        ("2 Hours", 7200),
        ("1e3s", 1000),
    ],
)
def test_durations_are_parsed(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("45 parsecs", "'45 parsecs' is not understood"),
        ("1h banana", "' banana' is not understood"),
        ("", "a duration such as '45m'"),
        (None, "None, but a duration"),
        (True, "True, but a duration"),
        ("30m1h", "the largest first"),
        ("1h2h", "each unit once"),
        (-5, "at least 0"),
        (math.nan, "finite"),
        ("1e999s", "finite"),
        ("-5m", "'-5m' is not understood"),
    ],
)
def test_the_error_for_a_duration_names_the_problem(value, words):
    with pytest.raises(InputError) as caught:
        parse_duration(value, "deadline")
    assert str(caught.value).startswith("deadline is ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "dollars"),
    [("25 USD", 25), ("$25", 25), (25, 25), ("USD 0.5", 0.5), ("1,250.50", 1250.5), ("3 dollars", 3), ("$1e-3", 0.001)],
)
def test_money_is_parsed(text, dollars):
    assert parse_money(text) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("25 EUR", "Only US dollars"),
        ("€25", "Only US dollars"),
        ("much", "dollars such as"),
        ("1,25", "dollars such as"),
        (None, "None, but dollars"),
        (False, "False, but dollars"),
        (-1, "at least 0"),
        (math.inf, "finite"),
    ],
)
def test_the_error_for_an_amount_names_the_problem(value, words):
    with pytest.raises(InputError) as caught:
        parse_money(value, "budget")
    assert str(caught.value).startswith("budget is ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.97, "1m"), (3599.7, "1h"), (86399, "1d"), (61, "1m1s"), (-90, "-1m30s"), (math.inf, "forever")],
)
def test_durations_are_written_with_two_units(seconds, text):
    assert format_duration(seconds) == text


@given(st.floats(1e-3, 1e8))
def test_a_written_duration_reads_back_nearly_equal(seconds):
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.03)


@given(st.floats(1e-9, 1e9))
def test_written_money_reads_back_nearly_equal(dollars):
    assert parse_money(format_money(dollars)) == pytest.approx(dollars, rel=0.06)


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0.999, "$1.00"), (999.999, "$1,000"), (1e-15, "$1e-15"), (math.inf, "unlimited"), (math.nan, "unknown")],
)
def test_money_at_the_edges(dollars, text):
    assert format_money(dollars) == text


@pytest.mark.parametrize("number", [np.int64(90), np.int32(90), np.uint8(90), np.float32(90.0), np.float64(90.0)])
def test_numpy_numbers_are_accepted(number: object) -> None:
    assert parse_duration(number) == parse_money(number) == 90.0


@pytest.mark.parametrize("value", [True, np.True_, np.array([1.0, 2.0]), None, 1j])
def test_other_types_are_errors(value: object) -> None:
    with pytest.raises(InputError, match="a duration such as"):
        parse_duration(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_can_be_read_again(value: float) -> None:
    text = format_number(value)
    assert float(text) == value
    assert ("e" in text) <= (not 1e-4 <= abs(value) < 1e15)
