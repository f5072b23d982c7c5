import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InfrastructureError
from lynceus.history import End, Expected, Order, Outcome, Plan, Reason, Told
from lynceus.ledger.records import order_of, order_record, outcome_of, outcome_record, told_of, told_record

anything = st.floats()
amounts = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
names = st.text(min_size=1, max_size=8)
metrics = st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
beliefs = st.builds(
    Expected,
    st.sampled_from(["cost", "log time"]),
    st.lists(anything, max_size=3).map(tuple),
    st.lists(anything, max_size=3).map(tuple),
)
plans = st.builds(
    Plan,
    st.integers(0, 10**6),
    st.text(max_size=20),
    st.booleans(),
    score=anything,
    gain=anything,
    best_gain=anything,
    best_rate=anything,
    probability=anything,
    usd=anything,
    expected=st.none() | beliefs,
    path=st.lists(st.integers(0, 99), max_size=3).map(tuple),
)
orders = st.builds(
    Order,
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.floats(min_value=0, allow_nan=False),
    st.floats(min_value=0, allow_nan=False),
    plans,
    st.booleans(),
)


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    end = draw(st.sampled_from(End))
    trace = draw(st.lists(st.tuples(amounts, anything), max_size=3)).copy()
    reason = draw(st.sampled_from(Reason)) if end is End.FAILED else None
    oracle = draw(st.none() | amounts)
    return Outcome(
        end, draw(amounts), draw(amounts), draw(metrics), tuple(trace), reason, draw(st.text(max_size=9)), oracle
    )


def same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    return bool(one == other)


def through_json(record: Any) -> Any:
    # PostgreSQL accepts neither NaN nor Infinity in JSON.
    return json.loads(json.dumps(record, allow_nan=False))


@given(orders)
def test_an_order_comes_back_as_it_was(order: Order) -> None:
    assert same(order_of(through_json(order_record(order))), order)


@given(outcomes())
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    assert same(outcome_of(through_json(outcome_record(outcome))), outcome)


@given(st.none() | st.builds(Told, amounts, metrics, st.just(True), amounts) | st.builds(Told, amounts, metrics))
def test_what_was_told_comes_back_as_it_was(told: Told | None) -> None:
    assert same(told_of(through_json(told_record(told))), told)


def test_a_later_format_is_refused_with_a_sentence() -> None:
    record = {**outcome_record(Outcome(End.FINISHED, 1.0, 1.0)), "v": 2}
    with pytest.raises(InfrastructureError, match="format 2; this version of Lynceus reads formats 1 to 1"):
        outcome_of(record)
