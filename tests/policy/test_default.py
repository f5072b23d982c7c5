"""The default policy where things are unusual: it always has something sensible to do and never overdraws."""

import numpy as np
import pytest

from lynceus.history import End, Outcome, Reason
from lynceus.policy import Because, Stopped, absorb, decide, preset, recommend
from lynceus.problem import Budget, Limit, Problem, Tariff
from lynceus.space import Categorical, Integer, Space

POLICY = preset("lynceus")


def space(nodes: int) -> Space:
    kinds = Categorical("vm", ["small", "large", "huge"])
    price = "nodes * (0.1 if vm == 'small' else 0.3 if vm == 'large' else 0.9)"
    return Space.build([kinds, Integer("nodes", 1, nodes)], price=price)


def explore(
    problem: Problem, seconds: np.ndarray, most: int = 60, failing: frozenset[int] = frozenset()
) -> tuple[tuple, Stopped | None]:
    history: tuple = ()
    for _ in range(most):
        order = decide(problem, POLICY, history, seed=3)
        if isinstance(order, Stopped):
            return history, order
        took = float(seconds[order.row])
        ran = min(took, order.cap_s)
        usd = problem.tariff.charge(ran, float(problem.price[order.row]), boots=order.boots)
        if order.row in failing:
            outcome = Outcome(End.FAILED, ran, usd, reason=Reason.OOM)
        else:
            outcome = Outcome(End.FINISHED if took <= order.cap_s else End.CAPPED, ran, usd)
        history = (*history, absorb(problem, POLICY, history, order, outcome))
        assert sum(seen.outcome.charged_usd for seen in history) <= problem.budget.usd * (1 + 1e-9)
    return history, None


def scaled(table: Space, work: float = 4000.0) -> np.ndarray:
    cores = np.array([{"small": 1, "large": 4, "huge": 9}[vm] for vm in table.column("vm")]) * table.column("nodes")
    return 30 + work / cores + 3 * np.asarray(table.column("nodes"), dtype=float)


def test_it_finds_the_optimum_of_a_plain_job_and_stops() -> None:
    problem = Problem(space(10), limits=(Limit("time", 600.0),))
    seconds = scaled(problem.space)
    cost = np.where(seconds <= 600, seconds * problem.price, np.inf)
    history, stopped = explore(problem, seconds)
    best = recommend(problem, POLICY, history, seed=3)
    assert stopped is not None
    assert best is not None
    assert best.cost_usd <= 1.1 * cost.min()
    assert len(history) < len(problem.space)


@pytest.mark.parametrize(
    "tariff", [Tariff(), Tariff(minimum_s=60, boot_s=45), Tariff(granularity_s=3600)], ids=["second", "minimum", "hour"]
)
def test_it_never_overdraws_a_tight_budget(tariff: Tariff) -> None:
    problem = Problem(space(8), limits=(Limit("time", 900.0),), budget=Budget(usd=0.6), tariff=tariff)
    _, stopped = explore(problem, scaled(problem.space))
    assert stopped is not None
    assert stopped.because in (Because.BUDGET, Because.CONVERGED)


def test_it_exhausts_a_space_of_three_rows() -> None:
    problem = Problem(space(1), limits=(Limit("time", 1e6),))
    history, stopped = explore(problem, np.array([500.0, 600.0, 700.0]))
    assert stopped is not None
    assert recommend(problem, POLICY, history, seed=3) is not None


def test_it_goes_on_when_no_run_can_keep_the_limit() -> None:
    """Every observation is a lower bound, up to the last row."""
    problem = Problem(space(6), limits=(Limit("time", 10.0),))
    history, stopped = explore(problem, scaled(problem.space))
    assert {seen.outcome.end for seen in history} == {End.CAPPED}
    assert len(history) == len(problem.space)
    assert stopped is not None
    assert stopped.because is Because.EXHAUSTED
    assert recommend(problem, POLICY, history, seed=3) is None


def test_constant_times_are_no_trouble() -> None:
    problem = Problem(space(6), limits=(Limit("time", 600.0),))
    history, _ = explore(problem, np.full(len(problem.space), 300.0))
    best = recommend(problem, POLICY, history, seed=3)
    assert best is not None
    assert best.row == int(np.argmin(problem.price))


def test_configurations_that_fail_are_not_tried_again() -> None:
    problem = Problem(space(6), limits=(Limit("time", 600.0),))
    failing = frozenset(range(0, len(problem.space), 3))
    history, _ = explore(problem, scaled(problem.space), failing=failing)
    rows = [seen.row for seen in history]
    assert len(rows) == len(set(rows))
    best = recommend(problem, POLICY, history, seed=3)
    assert best is not None
    assert best.row not in failing


def test_without_a_deadline_it_minimises_cost_alone() -> None:
    problem = Problem(space(8))
    seconds = scaled(problem.space)
    history, _ = explore(problem, seconds)
    best = recommend(problem, POLICY, history, seed=3)
    assert best is not None
    assert best.cost_usd <= 1.25 * (seconds * problem.price).min()


def test_several_workers_start_with_the_cheapest() -> None:
    problem = Problem(space(6), limits=(Limit("time", 600.0),))
    pending: tuple = ()
    for _ in range(4):
        order = decide(problem, POLICY, (), seed=3, pending=pending)
        assert not isinstance(order, Stopped)
        pending = (*pending, order)
    assert sorted(problem.price[[order.row for order in pending]]) == sorted(problem.price)[:4]
