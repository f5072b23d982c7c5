"""Initial designs: balanced, without duplicates, inside what may be tested, and resumable."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.designs import Amount, CheapFirst, LatinHypercube, QuasiRandom, UniformRows, latin_hypercube
from lynceus.policy.interfaces import Chooser
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.testing.choosers import check_chooser
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Outcome

GRID = Space.build(
    [Categorical("vm", ("a", "b", "c", "d")), Integer("nodes", 1, 8), Integer("batch", 1, 4)], price="nodes"
)
DESIGNS: dict[str, Chooser] = {
    "hypercube": LatinHypercube(Amount(count=6)),
    "uniform": UniformRows(Amount(count=6)),
    "quasi-random": QuasiRandom(Amount(count=6)),
    "cheap first": CheapFirst(Amount(count=6)),
    "cheap of all": CheapFirst(Amount(count=6), pool=None),
    "hypercube by price": LatinHypercube(Amount(count=6), cheapest_first=True),
}
every_design = pytest.mark.parametrize("design", list(DESIGNS.values()), ids=list(DESIGNS))


def rows_of(design: Chooser, job: SmallJob, seed: int = 0) -> list[int]:
    """All rows of a design, run one after the other."""
    rows: list[int] = []
    while (plan := design(State.present(job.problem, job.finished(rows)), None, seed)) is not None:
        rows.append(plan.row)
    return rows


@every_design
def test_every_design_meets_the_contract(design: Chooser) -> None:
    check_chooser(design)


@every_design
def test_a_design_has_distinct_rows_and_depends_on_the_seed(design: Chooser) -> None:
    job = small_job()
    rows = rows_of(design, job)
    assert len(rows) == len(set(rows)) == 6
    assert rows == rows_of(design, job)
    if design != DESIGNS["cheap of all"]:
        assert len({tuple(rows_of(design, job, seed)) for seed in range(5)}) > 1


@every_design
@settings(max_examples=15)
@given(ran=st.lists(st.integers(0, 5), unique=True), seed=st.integers(0, 3))
def test_a_design_continues_after_any_of_its_rows_ran(design: Chooser, ran: list[int], seed: int) -> None:
    job = small_job()
    rows = rows_of(design, job, seed)
    done = [rows[i] for i in ran]
    todo = []
    while (plan := design(State.present(job.problem, job.finished([*done, *todo])), None, seed)) is not None:
        todo.append(plan.row)
    assert todo == [row for row in rows if row not in done]


@every_design
def test_a_design_does_not_wait_for_pending_runs_and_repeats_after_infrastructure_failures(design: Chooser) -> None:
    job = small_job()
    rows = rows_of(design, job)
    pending = (Order(0, rows[0], 10.0, 0.1, Plan(rows[0], why="pending")),)
    second = design(State.present(job.problem, (), pending), None, 0)
    assert second is not None
    assert second.row == rows[1]
    lost = replace(
        job.observation(0, rows[0]), outcome=Outcome(End.FAILED, 1.0, 0.0, reason=FailureReason.INFRA), target=None
    )
    again = design(State.present(job.problem, (lost,)), None, 0)
    assert again is not None
    assert again.row == rows[0]


@every_design
def test_a_design_runs_each_row_once_even_where_repeats_are_allowed(design: Chooser) -> None:
    job = small_job()
    repeated = replace(job, problem=replace(job.problem, repeats=3))
    assert rows_of(design, repeated) == rows_of(design, job)


@every_design
def test_a_design_runs_testable_rows_only_and_keeps_its_size(design: Chooser) -> None:
    job = small_job()
    testable = job.problem.space.mask("vm == 'r' or nodes == 8")
    masked = replace(job, problem=replace(job.problem, testable=testable))
    rows = rows_of(design, masked)
    assert len(rows) == 6
    assert testable[rows].all()
    closed = replace(State.present(masked.problem, ()), open=testable & (np.arange(len(testable)) != rows[0]))
    plan = design(closed, None, 0)
    assert plan is not None
    assert plan.row == rows[1]


@pytest.mark.parametrize("count", [4, 8, 16])
@pytest.mark.parametrize("seed", range(3))
def test_a_hypercube_has_every_value_equally_often(count: int, seed: int) -> None:
    """On a full grid whose sizes divide the count, each value of each parameter occurs exactly count/width times."""
    rows = latin_hypercube(GRID, count, 20, seed)
    assert len(set(rows.tolist())) == count
    moved = 0
    for place, parameter in enumerate(GRID.parameters):
        width = len(parameter.values)
        met = Counter(GRID.codes[rows, place].tolist())
        if count % width == 0:
            # A point whose cell is taken moves to a neighbour: rare, and by one value at most on average.
            moved += sum(abs(met[code] - count // width) for code in range(width))
        else:
            assert max(met.values()) <= 2
    assert moved <= 4


def test_a_hypercube_is_better_spread_than_a_random_draw() -> None:
    """Maximin: over seeds, its closest pair is farther apart than that of a uniform draw."""
    job = small_job()
    points = job.problem.space.codes / np.array([2.0, 3.0, 1.0])

    def gap(rows: list[int]) -> float:
        chosen = points[rows]
        distance = np.abs(chosen[:, None] - chosen[None]).sum(axis=2)
        return float(distance[np.triu_indices(len(rows), 1)].min())

    cube = np.mean([gap(rows_of(DESIGNS["hypercube"], job, seed)) for seed in range(10)])
    random = np.mean([gap(rows_of(DESIGNS["uniform"], job, seed)) for seed in range(10)])
    assert cube > random


def test_uniform_rows_are_uniform() -> None:
    job = small_job()
    seen = Counter(row for seed in range(400) for row in rows_of(UniformRows(Amount(count=3)), job, seed))
    expected = 400 * 3 / len(job.problem.space)
    chi_square = sum((seen[row] - expected) ** 2 / expected for row in range(len(job.problem.space)))
    assert chi_square < 49.7  # 99.9 % quantile with 23 degrees of freedom


def test_cheap_first_is_the_cheapest_of_its_pool_in_order() -> None:
    job = small_job()
    price = job.problem.price
    assert price[rows_of(DESIGNS["cheap of all"], job)].tolist() == sorted(price.tolist())[:6]
    pooled = price[rows_of(DESIGNS["cheap first"], job)].tolist()
    assert pooled == sorted(pooled)
    by_price = price[rows_of(DESIGNS["hypercube by price"], job)].tolist()
    assert by_price == sorted(by_price)
    assert sorted(rows_of(DESIGNS["hypercube by price"], job)) == sorted(rows_of(DESIGNS["hypercube"], job))


@pytest.mark.parametrize(
    ("amount", "rows"),
    [
        (Amount(count=5), 5),
        (Amount(count=10_000), 128),
        (Amount(share=0.25), 32),
        (Amount(share=0.03), 4),
        (Amount(share=0.001), 3),
        (Amount(usd=1.0), 128),
    ],
)
def test_amounts(amount: Amount, rows: int) -> None:
    """3 % of 128 is 4; never fewer than the three parameters, never more than the rows."""
    assert amount.rows(Problem(GRID)) == rows


def test_amounts_count_testable_rows() -> None:
    problem = Problem(GRID, testable=GRID.mask("nodes == 1"))
    assert Amount(share=0.25).rows(problem) == 4
    assert Amount(count=100).rows(problem) == 16


def test_a_design_with_a_budget_ends_when_it_is_spent() -> None:
    job = small_job()
    rows = rows_of(LatinHypercube(Amount(usd=1.0)), job)
    charged = np.cumsum([job.observation(0, row).outcome.charged_usd for row in rows])
    assert charged[-1] >= 1.0 > charged[-2]


@pytest.mark.parametrize("wrong", [{}, {"count": 0}, {"count": 3, "share": 0.1}, {"usd": -1.0}])
def test_invalid_amounts_are_errors(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="give exactly one positive number"):
        Amount(**wrong)  # type: ignore[arg-type]


def test_designs_handle_conditional_parameters() -> None:
    space = Space.build(
        [Categorical("disk", ("none", "ssd")), Integer("size", 1, 4, when="disk == 'ssd'"), Integer("nodes", 1, 3)],
        price="nodes",
    )
    rows = latin_hypercube(space, 6, 10, 0)
    assert len(set(rows.tolist())) == 6
    assert len({tuple(space.codes[row]) for row in rows}) == 6


def test_plans_say_their_position() -> None:
    job = small_job()
    rows = rows_of(DESIGNS["hypercube"], job)
    plan = DESIGNS["hypercube"](State.present(job.problem, job.finished(rows[:2])), None, 0)
    assert plan is not None
    assert plan.why == "Latin hypercube 3 of 6"
    assert not plan.stoppable
