"""Units of metrics, limits in them, and dollars of a use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.dollar_use import dollar_use
from lynceus.problem.future_use import FutureUse
from lynceus.problem.metric_units import Unit, in_unit
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space

SPACE = Space.build([Integer("pods", 1, 4)], price="0.5 * pods")


@pytest.mark.parametrize(
    ("text", "scale", "powers"),
    [
        ("ms", 1e-3, {"s": 1}),
        ("tokens/s", 1.0, {"token": 1, "s": -1}),
        ("requests per minute", 1 / 60, {"request": 1, "s": -1}),
        ("USD/million tokens", 1.0, {"USD": 1, "million token": -1}),
        ("MiB", 2.0**20, {"B": 1}),
        ("kW", 1e3, {"J": 1, "s": -1}),
        ("%", 0.01, {}),
    ],
)
def test_units_are_read(text: str, scale: float, powers: dict[str, float]) -> None:
    unit = Unit.parse(text)
    assert unit.scale == pytest.approx(scale)
    assert dict(unit.powers) == powers


@given(st.floats(1e-6, 1e6), st.sampled_from(["ns", "us", "ms", "s", "min", "h"]), st.sampled_from(["ms", "s", "h"]))
def test_amounts_survive_a_conversion(amount: float, one: str, other: str) -> None:
    there = in_unit(f"{amount!r}{one}", other)
    assert there is not None
    assert in_unit(f"{there!r}{other}", one) == pytest.approx(amount, rel=1e-12)


UNITS = {"ttft": "ms", "itl": "s", "throughput": "tokens/s", "errors": "%"}


@pytest.mark.parametrize(
    ("text", "bound", "shown"),
    [
        ("ttft <= 500ms", 500.0, "ttft <= 500ms"),
        ("ttft <= 0.5 s", 500.0, "ttft <= 500ms"),
        ("ttft <= 500", 500.0, "ttft <= 500ms"),
        ("itl <= 40ms @ 0.9", 0.04, "itl <= 0.04s @ 0.9"),
        ("throughput >= 1200 tokens/min", 20.0, "throughput >= 20 tokens/s"),
        ("errors <= 1%", 1.0, "errors <= 1%"),
        ("p99( ttft ) <= 2s", 2000.0, "p99(ttft) <= 2000ms"),
    ],
)
def test_limits_are_written_in_any_unit_of_their_kind(text: str, bound: float, shown: str) -> None:
    constraint = Constraint.parse(text, UNITS)
    assert constraint.bound == bound
    assert str(constraint) == shown
    assert Constraint.parse(shown, UNITS) == constraint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "latency <= 500ms",
            "has a unit, but none is declared for latency; declare it, as in metrics: {latency: {unit: ms}}",
        ),
        ("ttft <= 3MB", "'3MB' in 'ttft <= 3MB' is no amount of ms, the unit of ttft"),
        ("p95(ttft) <= fast", "is no amount of ms, the unit of ttft"),
    ],
)
def test_a_unit_must_be_declared_and_fit(text: str, message: str) -> None:
    with pytest.raises(InputError, match="constraints") as error:
        Constraint.parse(text, UNITS)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("objective", "unit", "usd"),
    [
        ("cost", "run", 1.0),
        ("minimize usd_per_query", "query", 1.0),
        ("minimize price / throughput", "token", 1 / 3600),
        ("minimize 1e6 * price / (3600 * throughput)", "token", 1e-6),
        ("minimize pods * price", "hour", 1.0),
        ("minimize (price + price) / throughput", "token", 1 / 3600),
        ("minimize cost / answers", "answer", 1.0),
        ("minimize bill", "million token", 1.0),
    ],
)
def test_dollars_follow_from_units(objective: str, unit: str, usd: float) -> None:
    units = {"throughput": "tokens/s", "answers": "answers", "bill": "USD/million tokens"}
    found = dollar_use(Problem(SPACE, Objective.parse(objective), units=units))
    assert found is not None
    assert (found.unit, found.usd) == (unit, pytest.approx(usd))


@pytest.mark.parametrize(
    "objective",
    ["time", "maximize throughput / price", "minimize price / speed", "minimize price + throughput", "minimize loss"],
)
def test_other_objectives_are_no_dollars(objective: str) -> None:
    assert dollar_use(Problem(SPACE, Objective.parse(objective), units={"throughput": "tokens/s"})) is None


def test_a_future_use_needs_units_to_count() -> None:
    with pytest.raises(
        InputError,
        match=r"future: 'price / speed' is no amount of dollars that can be counted; declare the unit of speed",
    ):
        Problem(SPACE, Objective.parse("minimize price / speed"), future=FutureUse(runs=1e9))
    Problem(SPACE, Objective.parse("minimize price / speed"), future=FutureUse(runs=1e9), units={"speed": "tokens/s"})
