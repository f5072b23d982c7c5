"""Formulas: what is known is computed once, what runs tell is left, and a product of powers is recognised."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.billing import Billing
from lynceus.problem.formula import Formula
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.derived import Computed
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space

SPACE = Space.build(
    [Categorical("gpu", ["a10", "h100"]), Integer("pods", 1, 3)],
    derived=[Computed("memory", "24 if gpu == 'a10' else 80")],
    price="pods * (1 if gpu == 'a10' else 4)",
)
HOURLY = np.array([1.0, 2.0, 3.0, 4.0, 8.0, 12.0])


def test_known_parts_are_computed_once_and_quantities_are_left() -> None:
    formula = Formula.of("price / throughput + 2 * errors", SPACE)
    assert formula.quantities == ("throughput", "errors")
    assert formula.reads == ("price",)
    assert formula.value(4, {"throughput": 4.0, "errors": 0.5}) == 3.0
    assert formula.monomial is None, "a sum of different quantities is no product"


@pytest.mark.parametrize(
    ("text", "factor", "exponents"),
    [
        ("price / throughput", HOURLY, {"throughput": -1.0}),
        ("price / (3600 * throughput) * 1e6", HOURLY / 3600 * 1e6, {"throughput": -1.0}),
        ("sqrt(latency) * pods ** 2 / throughput ** 2", [1, 4, 9, 1, 4, 9], {"latency": 0.5, "throughput": -2.0}),
        ("latency * price + 2 * latency", HOURLY + 2, {"latency": 1.0}),
        ("pods * price", HOURLY * [1, 2, 3, 1, 2, 3], {}),
        ("latency / latency * memory", [24, 24, 24, 80, 80, 80], {}),
        ("(2 if gpu == 'h100' else 1) * latency", [1, 1, 1, 2, 2, 2], {"latency": 1.0}),
    ],
)
def test_products_of_powers_are_recognised(text: str, factor: object, exponents: dict[str, float]) -> None:
    monomial = Formula.of(text, SPACE).monomial
    assert monomial is not None
    assert dict(monomial.exponents) == exponents
    np.testing.assert_allclose(monomial.factor, np.asarray(factor, dtype=float), rtol=1e-12)


@pytest.mark.parametrize("text", ["latency + price", "log(latency)", "max(latency, 2)", "-latency", "latency ** pods"])
def test_anything_else_is_no_product(text: str) -> None:
    assert Formula.of(text, SPACE).monomial is None


@given(
    row=st.integers(0, 5),
    throughput=st.floats(1e-3, 1e6),
    latency=st.floats(1e-3, 1e6),
    text=st.sampled_from(
        [
            "price / throughput",
            "price * latency if latency > 3 else pods",
            "max(latency, throughput, memory) - min(price, 2)",
            "(gpu == 'h100') * latency + (not throughput > 5)",
            "abs(latency - throughput) ** 0.5 + pods % 2",
            "latency if 1 < throughput <= 50 and price < 5 else floor(throughput)",
        ]
    ),
)
def test_values_are_those_of_python(row: int, throughput: float, latency: float, text: str) -> None:
    from math import floor

    here = {name: column.tolist()[row] for name, column in SPACE.columns.items()}
    told = {"throughput": throughput, "latency": latency}
    expected = eval(text, {"floor": floor}, {**here, **told, "price": float(HOURLY[row])})
    assert Formula.of(text, SPACE).value(row, told) == pytest.approx(float(expected), rel=1e-12)


def test_values_broadcast_over_states_and_rows() -> None:
    formula = Formula.of("price / throughput", SPACE)
    throughput = np.arange(1.0, 13.0).reshape(2, 6)
    np.testing.assert_allclose(formula.values({"throughput": throughput}), HOURLY / throughput)
    rows = np.array([5, 0])
    np.testing.assert_allclose(
        formula.values({"throughput": np.ones((2, 3))}, rows[:, None]), np.broadcast_to(HOURLY[rows][:, None], (2, 3))
    )


def test_a_division_by_zero_has_no_value() -> None:
    problem = Problem(SPACE, Objective.parse("minimize price / throughput"))
    assert problem.answer_value(0, 10.0, {"throughput": 0.0}) is None
    assert problem.answer_value(0, 10.0, {}) is None, "not reported"
    assert problem.answer_value(0, 10.0, {"throughput": 2.0}) == 0.5


def test_time_and_cost_are_quantities_and_cost_is_time_where_billing_is_linear() -> None:
    linear = Problem(SPACE, Objective.parse("minimize cost * error"))
    assert linear.goal.formula is not None
    assert linear.goal.formula.quantities == ("time", "error")
    assert linear.value(1, 3600.0, {"error": 0.5}) == pytest.approx(1.0)
    rounded = Problem(SPACE, Objective.parse("minimize cost * error"), billing=Billing(minimum_s=7200.0))
    assert rounded.goal.formula is not None
    assert rounded.goal.formula.quantities == ("cost", "error")
    assert rounded.value(1, 3600.0, {"error": 0.5}) == pytest.approx(2.0)


def test_an_objective_of_columns_alone_is_known() -> None:
    problem = Problem(SPACE, Objective.parse("minimize pods * price"), (Constraint.parse("p99 <= 200"),))
    assert problem.metrics == ("p99",)
    assert problem.goal.known is not None
    np.testing.assert_allclose(problem.goal.known, HOURLY * [1, 2, 3, 1, 2, 3])
    assert Problem(SPACE, Objective.parse("maximize memory")).goal.known[0] == -24.0  # type: ignore[index]
    assert Problem(SPACE, Objective.parse("price")).goal.known[5] == 12.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minimize 3 * 4", "is the same for every configuration"),
        ("minimize gpu * latency", "needs numbers, but a part of it is 'a10'"),
        ("minimize price / (pods - 1)", "divides by zero"),
        ("minimize latency in [1, 2]", "tests what runs report with 'in' or 'is'"),
        ("minimize latency *", "cannot be read"),
        ("minimize run(latency)", "a call of 'run' is not allowed"),
    ],
)
def test_mistakes_are_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match="objective") as error:
        _ = Problem(SPACE, Objective.parse(text)).goal.formula
    assert message in str(error.value)


def test_a_parameter_called_price_is_refused_where_formulas_read_the_price() -> None:
    space = Space.build([Integer("price", 1, 3)], price=1.0)
    with pytest.raises(InputError, match="'price' is the name of a configuration's dollars per hour"):
        Problem(space, Objective.parse("minimize price / throughput"))
