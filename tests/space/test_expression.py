"""Expressions: Python's meaning over whole columns, and no other feature of Python."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing import demand_an_answer, evaluate, expressions
from lynceus.errors import InputError
from lynceus.space.expression import Expression

COLUMNS = {
    "x": [0, 1, 2, 3, 5, 8],
    "y": [0.5, -1.5, 2.0, 0.25, 3.0, -0.75],
    "s": ["a", "b", "a", "cc", "b", "d"],
    "t": [True, False, True, True, False, False],
}
NAMES = {"min": min, "max": max, "abs": abs, "ceil": math.ceil, "floor": math.floor, "round": round, "int": int}


def python(text):
    """The result of Python itself, row by row; the text comes from the strategies below."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    return [eval(text, {"__builtins__": {}}, {**NAMES, **row}) for row in rows]


ORDER = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
LEAVES = st.one_of(st.sampled_from(["x", "y", "t"]), st.integers(-5, 5).map(str), st.sampled_from(["0.5", "2.25"]))
FACTS = st.sampled_from(["s == 'a'", "s != x", "s in ('a', 'd')", "s < 'b'", "t", "s + 'x' == 'ax'", "x is None"])


@st.composite
def numbers(draw, depth=3):
    """A text whose value is a number."""
    kind = draw(st.integers(0, 6)) if depth else 0

    def inner():
        return draw(numbers(depth - 1))

    if kind == 1:
        return f"({inner()} {draw(st.sampled_from(['+', '-', '*', '/', '//', '%']))} {inner()})"
    if kind == 2:
        return f"({draw(st.sampled_from(['x', '2', 't']))} ** {draw(st.integers(-2, 3))})"
    if kind == 3:
        return f"{draw(st.sampled_from(['min', 'max']))}({inner()}, {inner()})"
    if kind == 4:
        return f"{draw(st.sampled_from(['abs', 'ceil', 'floor', 'round', 'int', '-']))}({inner()})"
    if kind == 5:
        return f"({inner()} if {draw(truths(depth - 1))} else {inner()})"
    return draw(LEAVES)


@st.composite
def truths(draw, depth=3):
    """A text whose value is true or false."""
    kind = draw(st.integers(0, 5)) if depth else 0
    if kind == 1:
        return f"({draw(numbers(depth - 1))} {draw(ORDER)} {draw(numbers(depth - 1))})"
    if kind == 2:
        sides = [draw(numbers(depth - 1)) for _ in range(3)]
        return f"({sides[0]} {draw(ORDER)} {sides[1]} {draw(ORDER)} {sides[2]})"
    if kind == 3:
        return f"({draw(numbers(depth - 1))} {draw(st.sampled_from(['in', 'not in']))} [1, -2, 2.0, 'a', True, None])"
    if kind == 4:
        return f"({draw(truths(depth - 1))} {draw(st.sampled_from(['and', 'or']))} {draw(truths(depth - 1))})"
    if kind == 5:
        return f"(not {draw(truths(depth - 1))})"
    return f"({draw(FACTS)})"


@settings(max_examples=300, deadline=None)
@given(numbers())
def test_numbers_are_what_python_computes(text):
    try:
        expected = python(text)
    except ZeroDivisionError:
        with pytest.raises(InputError):
            Expression.parse(text).evaluate(COLUMNS)
        return
    computed = Expression.parse(text).evaluate(COLUMNS).astype(float)
    assert computed == pytest.approx(np.array(expected, dtype=float), rel=1e-12, abs=1e-12)


@settings(max_examples=300, deadline=None)
@given(truths())
def test_conditions_are_what_python_decides(text):
    try:
        expected = [bool(value) for value in python(text)]
    except ZeroDivisionError:
        with pytest.raises(InputError):
            Expression.parse(text).mask(COLUMNS)
        return
    assert Expression.parse(text).mask(COLUMNS).tolist() == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("log2(8)", 3.0),
        ("log10(100)", 2.0),
        ("log(exp(1))", 1.0),
        ("sqrt(16)", 4.0),
        ("round(2.346, 2)", 2.35),
        ("float(3)", 3.0),
        ("len('abc')", 3),
        ("str(3) + 'x'", "3x"),
        ("+True", 1),
        ("2 ** 10", 1024),
        ("2 ** 300", 2.0**300),
        ("7 // 2", 3),
        ("'a\nb' == 1", False),
    ],
)
def test_functions_and_constants(text, value):
    assert Expression.parse(text).evaluate({"x": [1]}).tolist() == [value]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("n > 1", [False, True]),
        ("not n > 1", [True, False]),
        ("n <= 1", [False, False]),
        ("n == 2", [False, True]),
        ("n != 2", [True, False]),
        ("n == None", [True, False]),
        ("n is None", [True, False]),
        ("n is not None and n > 1", [False, True]),
        ("n + 1 > 2", [False, True]),
        ("10 / n > 1", [False, True]),
        ("n in [2, 3]", [False, True]),
        ("n in [None]", [True, False]),
        ("n", [False, True]),
        ("w == 'a'", [True, False]),
        ("w < 'b'", [True, False]),
        ("w + 'b' == 'ab'", [True, False]),
        ("max(n, 5) == 5", [False, True]),
        ("len(w) == 1", [True, False]),
        ("(1 if n is None else n) == 1", [True, False]),
    ],
)
def test_inactive_values(text, result):
    assert Expression.parse(text).mask({"n": [None, 2], "w": ["a", None]}).tolist() == result


def test_inactive_values_stay_inactive_in_a_computed_column():
    column = Expression.parse("n * 2").evaluate({"n": [None, 2]})
    assert column.tolist() == [None, 4]


def test_whole_numbers_stay_whole_and_others_do_not():
    columns = {"x": [4, 8]}
    assert Expression.parse("x * 2 // 3").evaluate(columns).dtype == np.int64
    assert Expression.parse("x / 2").evaluate(columns).dtype == np.float64
    assert Expression.parse("x ** -1").evaluate(columns).tolist() == [0.25, 0.125]


def test_names_are_in_order_of_use_and_may_have_dots():
    expression = Expression.parse("spark.executor.cores * n > 4 and n < m")
    assert expression.names == ("spark.executor.cores", "n", "m")
    assert expression.mask({"spark.executor.cores": [2, 3], "n": [2, 2], "m": [5, 5]}).tolist() == [False, True]


def test_an_expression_may_run_over_several_lines():
    assert Expression.parse("x > 1\n and x < 3").mask({"x": [1, 2, 3]}).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("().__class__", "attribute"),
        ("x.__class__", "begins with __"),
        ("__import__('os')", "a call of '__import__' is not allowed"),
        ("__builtins__", "begins with __"),
        ("os.system('ls')", "a call of this is not allowed"),
        ("'a'.upper()", "a call of this"),
        ("'a'.upper", "attribute"),
        ("min.x", "attribute"),
        ("eval('1')", "a call of 'eval'"),
        ("mim(1, 2)", "Did you mean 'min'?"),
        ("[y for y in [1]]", "comprehension"),
        ("min(y for y in [1])", "takes 2 to 20"),
        ("max(1, (y for y in [1]))", "comprehension"),
        ("1 in [y for y in [1]]", "list of values"),
        ("{1: 2}", "dictionary"),
        ("{1, 2}", "a set"),
        ("(1, 2)", "tuple"),
        ("lambda: 1", "lambda"),
        ("(y := 1)", "assignment"),
        ("f'{x}'", "f-string"),
        ("x[0]", "index"),
        ("min(*[1, 2])", "takes 2 to 20"),
        ("max(1, *[1, 2])", "unpacking"),
        ("round(x, ndigits=1)", "plain argument"),
        ("sqrt()", "sqrt() takes 1 plain argument."),
        ("b'a'", "bytes"),
        ("1j", "complex"),
        ("...", "ellipsis"),
        ("await x", "await"),
        ("x & 1", "write 'and'"),
        ("x | 1", "write 'or'"),
        ("~x", "write 'not'"),
        ("x << 1", "LShift"),
        ("x @ x", "MatMult"),
        ("x is 1", "'is' is allowed only before None"),
        ("x in x", "after 'in' a list"),
        ("x in [x]", "plain values"),
        ("x in [1] == True", "'in' cannot be followed"),
        ("x = 1", "Write '==' to compare"),
        ("x && y", "Write 'and' for '&&'"),
        ("x || y", "Write 'or' for '||'"),
        ("x >", "cannot be read at character 4: it ends where a value is expected"),
        ("(x", "cannot be read"),
        ("x\x00", "cannot be read"),
        ("'\ud800'", "cannot be read"),
        ("import os", "cannot be read"),
        ("x; x", "cannot be read"),
        ("9" * 400, "too large"),
        ("1e999", "too large"),
        ("9" * 5000, "cannot be read"),
        ("x" * 1_000_000, "more than 10,000"),
        ("(" * 300 + "x" + ")" * 300, "cannot be read"),
        ("-" * 3000 + "x", "nested too deeply"),
        ("+".join(["x"] * 2000), "nested too deeply"),
        ("not " * 150 + "x", "nested too deeply"),
        ("", "is needed"),
        ("   ", "is needed"),
    ],
)
def test_forbidden_syntax_is_an_error_when_parsed(text, words):
    with pytest.raises(InputError) as caught:
        Expression.parse(text, "forbid")
    assert words in str(caught.value)
    assert str(caught.value).startswith("forbid ")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [None, [], {}, b"x", object()])
def test_other_types_are_errors(value):
    with pytest.raises(InputError, match="an expression such as"):
        Expression.parse(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("z > 1", "unknown name 'z'"),
        ("nodse > 1", "Did you mean 'nodes'?"),
        ("os.system", "unknown name 'os.system'"),
        ("x / x", "at character 1: this divides by zero"),
        ("1 + x % 0", "at character 5: this divides by zero"),
        ("0 ** -x", "not a finite number"),
        ("9 ** 9 ** 9 ** 9", "not a finite number"),
        ("(x - 4) ** 0.5", "not a finite number"),
        ("log(x)", "not a finite number"),
        ("exp(1000)", "not a finite number"),
        ("1e308 * 10", "not a finite number"),
        ("s * 3", "this needs numbers, but a value is the text 'a'"),
        ("s * s", "this needs numbers"),
        ("s + 1", "this needs numbers"),
        ("-s", "this needs numbers"),
        ("abs(s)", "this needs numbers"),
        ("s < 1", "orders a text against a number"),
        ("mixed < 1", "orders a text against a number"),
        ("mixed + mixed", "joins two texts"),
        ("mixed + s", "joins two texts"),
        ("len(x)", "not text"),
        ("round(1.5, x)", "from 0 to 15"),
        ("round(1.5, 16)", "from 0 to 15"),
        ("'ü' == 's' or x / 0", "at character 15: this divides"),
    ],
)
def test_runtime_errors_name_the_position(text, words):
    columns = {"x": [0, 1], "s": ["a", "b"], "nodes": [1, 2], "mixed": [1, "a"]}
    with pytest.raises(InputError) as caught:
        Expression.parse(text).evaluate(columns)
    assert words in str(caught.value)


def test_joined_text_has_a_largest_length():
    columns = {"s": ["a" * 6000]}
    with pytest.raises(InputError, match="longer than 10,000"):
        Expression.parse("s + s").evaluate(columns)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="xyz019._ ()[]{}+-*/%<>=!'\"andorinotifls:,@&|~#\n", max_size=40))
def test_any_text_is_parsed_or_an_input_error(text):
    with contextlib.suppress(InputError):  # any other error fails the test
        expression = Expression.parse(text)
        mask = expression.mask({name: [1, 2] for name in expression.names} or {"x": [1, 2]})
        assert mask.shape == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "threads" + "*threads" * 3000,
        "'a'" + "+'a'" * 2500,
        "-" * 9000 + "1",
        "[" * 5000,
        "not " * 2000 + "1",
        "1 if 1 else " * 800 + "1",
        "threads" + ".x" * 4900,
        "1" + "0" * 9000,
        "f'{" * 2000,
        "1<" * 4000 + "1",
        "int(exp(700)) * int(exp(700))",
        "not -(None if codec else codec)",
        "codec + 1 if codec is None else 0",
        "log(codec) if codec is None else 0",
    ],
)
def test_a_hostile_expression_is_answered(text: str) -> None:
    demand_an_answer(evaluate, text)


@given(expressions())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_expression_is_answered(text: str) -> None:
    demand_an_answer(evaluate, text)


@pytest.mark.slow
@given(expressions())
@settings(max_examples=20_000, deadline=None)
def test_very_many_expressions_are_answered(text: str) -> None:
    demand_an_answer(evaluate, text)


def test_joined_texts_are_bounded_over_all_configurations() -> None:
    column = [str(number) for number in range(50_000)]
    with pytest.raises(InputError, match="joined texts are longer than"):
        Expression.parse(f"name + '{'x' * 9000}'").evaluate({"name": column})
