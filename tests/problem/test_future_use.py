"""How often a result will be used: two ways to say it, one value, and a sentence for everything else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lynceus.errors import InputError
from lynceus.problem.future_use import FutureUse, format_count, plural
from lynceus.problem.objective import Objective


@pytest.mark.parametrize(
    ("given", "count", "shown"),
    [
        ({"runs": 100}, 100.0, "100 runs"),
        ({"runs": 1}, 1.0, "1 run"),
        ({"runs": 2.5}, 2.5, "2.5 runs"),
        ({"runs": 1_250_000}, 1.25e6, "1,250,000 runs"),
        ({"per_month": 30, "months": 6}, 180.0, "180 runs (30 a month for 6 months)"),
        ({"per_month": 4, "months": 1}, 4.0, "4 runs (4 a month for 1 month)"),
    ],
)
def test_both_forms_are_one_count(given: dict[str, Any], count: float, shown: str) -> None:
    found = FutureUse.read(given)
    assert (found.count, found.shown(), FutureUse.read(found)) == (count, shown, found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"runs": 0}, "future: runs is 0; give a finite number above 0, such as 100."),
        ({"runs": -3}, "future: runs is -3; give"),
        ({"runs": math.nan}, "future: runs is nan; give"),
        ({"runs": math.inf}, "future: runs is inf; give"),
        ({"runs": True}, "future: runs is true; give"),
        ({"runs": "100"}, "future: runs is '100'; give"),
        ({"per_month": 30, "months": -6}, "future: months is -6; give a finite number above 0, such as 6."),
        (
            {"runs": 100, "months": 6},
            "future: runs and per_month with months say the same thing twice; give one of them.",
        ),
        ({"per_month": 30}, "future: per_month is 30 without months; add for how long, such as months: 6."),
        ({"months": 6}, "future: months is 6 without per_month; add how often the job runs in a month"),
        ({}, "future: it says nothing; write {runs: 100}, or {per_month: 30, months: 6}."),
        ({"per_month": 1e300, "months": 1e300}, "future: 1e+300 a month for 1e+300 months is too large to count"),
        ({"run": 100}, "future: there is no field 'run'; did you mean 'runs'?"),
        (100, "future: got 100; write {runs: 100}, or"),
    ],
)
def test_bad_values_get_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        FutureUse.read(given)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("objective", "unit"),
    [
        ("cost", None),
        ("time", None),
        ("minimize usd_per_million_tokens", "million tokens"),
        ("minimize cost_per_query", "query"),
        ("minimize Dollars_Per_1k_images", "1k images"),
        ("maximize usd_per_hour", None),
        ("minimize seconds_per_image", None),
    ],
)
def test_an_objective_in_dollars_per_unit_names_its_unit(objective: str, unit: str | None) -> None:
    assert Objective.parse(objective).per_unit == unit


def test_counts_and_units_in_words() -> None:
    assert [format_count(count) for count in (1.0, 0.5, 1e6, 1e20, 1e-9)] == ["1", "0.5", "1,000,000", "1e+20", "1e-09"]
    assert [plural(noun) for noun in ("run", "query", "day", "million tokens")] == [
        "runs",
        "queries",
        "days",
        "million tokens",
    ]
