"""Budgets that are refused."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.problem.budget import Budget


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"usd": 0.0}, "budget: 0.0 dollars is no budget"),
        ({"usd": math.nan}, "budget: nan dollars is no budget"),
        ({"usd": -2.0}, "give a positive amount, for example '25 USD'"),
        ({"trials": 0}, "budget: max_trials is 0; give at least 1"),
        ({"wall_clock_s": 0.0}, "give a positive duration, for example '12h'"),
        ({"wall_clock_s": math.nan}, "wall_clock is nan seconds"),
    ],
)
def test_budgets_that_allow_nothing(fields: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Budget(**fields)  # type: ignore[arg-type]
