import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InfrastructureError
from lynceus.storage.serialization import order_of, order_record, outcome_of, outcome_record, target_of, target_record
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, FailureReason, Outcome, TrainingTarget

any_float = st.floats()
amounts = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
names = st.text(min_size=1, max_size=8)
metrics = st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
predictions = st.builds(
    Expected,
    st.sampled_from(["cost", "log time"]),
    st.lists(any_float, max_size=3).map(tuple),
    st.lists(any_float, max_size=3).map(tuple),
)
plans = st.builds(
    Plan,
    st.integers(0, 10**6),
    st.text(max_size=20),
    st.booleans(),
    score=any_float,
    gain=any_float,
    best_gain=any_float,
    best_rate=any_float,
    probability=any_float,
    usd=any_float,
    expected=st.none() | predictions,
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
    trace = draw(st.lists(st.tuples(amounts, any_float), max_size=3)).copy()
    reason = draw(st.sampled_from(FailureReason)) if end is End.FAILED else None
    oracle = draw(st.none() | amounts)
    return Outcome(
        end, draw(amounts), draw(amounts), draw(metrics), tuple(trace), reason, draw(st.text(max_size=9)), oracle
    )


def equal(one: Any, other: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    return bool(one == other)


def through_json(record: Any) -> Any:
    # PostgreSQL accepts neither NaN nor Infinity in JSON.
    return json.loads(json.dumps(record, allow_nan=False))


@given(orders)
def test_order_round_trip(order: Order) -> None:
    assert equal(order_of(through_json(order_record(order))), order)


@given(outcomes())
def test_outcome_round_trip(outcome: Outcome) -> None:
    assert equal(outcome_of(through_json(outcome_record(outcome))), outcome)


@given(
    st.none()
    | st.builds(TrainingTarget, amounts, metrics, st.just(True), amounts)
    | st.builds(TrainingTarget, amounts, metrics)
)
def test_training_target_round_trip(target: TrainingTarget | None) -> None:
    assert equal(target_of(through_json(target_record(target))), target)


def test_a_newer_format_is_rejected() -> None:
    record = {**outcome_record(Outcome(End.FINISHED, 1.0, 1.0)), "v": 2}
    with pytest.raises(InfrastructureError, match="format 2; this version of Lynceus reads formats 1 to 1"):
        outcome_of(record)
