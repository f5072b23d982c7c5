"""Choosers without a model."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.designs import Amount, UniformRows
from lynceus.policy.interfaces import Chooser
from lynceus.policy.planners.simple import ByKnownCost, ByPrice, FirstOf, Uniform, Within
from lynceus.problem.objective import Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.testing.choosers import check_chooser
from lynceus.testing.job import small_job

JOB = small_job()
HERE = State.present(JOB.problem, ())


@pytest.mark.parametrize(
    "chooser",
    [
        Uniform(),
        ByPrice(),
        ByKnownCost(),
        FirstOf((UniformRows(Amount(count=2)), ByPrice())),
        Within("nodes >= 4", Uniform()),
    ],
    ids=repr,
)
def test_the_contract(chooser: Chooser) -> None:
    check_chooser(chooser)


def test_uniform_draws_every_open_row_equally_often() -> None:
    open_rows = np.zeros(24, dtype=bool)
    open_rows[[2, 5, 7, 11]] = True
    drawn = Counter(Uniform()(replace(HERE, open=open_rows), None, seed).row for seed in range(800))  # type: ignore[union-attr]
    assert set(drawn) == {2, 5, 7, 11}
    assert all(150 < count < 250 for count in drawn.values())


def test_by_known_cost_follows_the_objective_where_it_is_known_and_the_price_elsewhere() -> None:
    space = Space.build([Integer("users", values=(1, 2, 4)), Integer("gpus", 1, 2)], price="gpus * (1 + users)")
    known = Problem(space, Objective.parse("minimize price * ceil(8 / users)"))
    rows: list[int] = []
    while (
        plan := ByKnownCost()(replace(State.present(known, ()), open=~np.isin(np.arange(6), rows)), None, 1)
    ) is not None:
        rows.append(plan.row)
    assert sorted(rows) == list(range(6))
    objective = known.goal.known
    assert objective is not None
    assert (np.diff(objective[rows]) >= 0).all()
    assert ByKnownCost()(HERE, None, 3) == ByPrice()(HERE, None, 3)


def test_by_price_is_in_order_of_price_and_breaks_ties_at_random() -> None:
    rows: list[int] = []
    while (plan := ByPrice()(State.present(JOB.problem, JOB.finished(rows)), None, 1)) is not None:
        rows.append(plan.row)
    price = JOB.problem.price[rows]
    assert (np.diff(price) >= 0).all()
    assert len(rows) == 24
    firsts = {ByPrice()(HERE, None, seed).row for seed in range(20)}  # type: ignore[union-attr]
    assert len(firsts) == 2, "two batch sizes share the lowest price"
    plan = ByPrice()(HERE, None, 0)
    assert plan is not None
    assert plan.why == "lowest price left, $0.17/h"


def test_first_of_uses_the_first_proposal() -> None:
    design = UniformRows(Amount(count=1))
    both = FirstOf((design, ByPrice()))
    first = both(HERE, None, 0)
    assert first == design(HERE, None, 0)
    assert first is not None
    second = both(State.present(JOB.problem, JOB.finished([first.row])), None, 0)
    assert second is not None
    assert second.why.startswith("lowest price left")
    assert FirstOf(())(HERE, None, 0) is None


def test_within_is_restricted_to_its_part() -> None:
    chooser = Within("vm == 'r' and batch == 64", ByPrice())
    plan = chooser(HERE, None, 0)
    assert plan is not None
    assert JOB.problem.space.point(plan.row) == {"vm": "r", "nodes": 1, "batch": 64}
    inside = np.flatnonzero(JOB.problem.space.mask("vm == 'r' and batch == 64")).tolist()
    assert chooser(State.present(JOB.problem, JOB.finished(inside)), None, 0) is None
    with pytest.raises(InputError):
        Within("colour == 'red'", ByPrice())(HERE, None, 0)
