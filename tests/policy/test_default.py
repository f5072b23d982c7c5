"""The default policy in unusual situations: it continues sensibly and never exceeds the budget."""

import numpy as np
import pytest

from deciding import decide
from lynceus.policy.next_step import observe
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import recommend
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus.trial.stop import Stopped, StopReason

POLICY = preset("lynceus")


def space(nodes: int) -> Space:
    kinds = Categorical("vm", ["small", "large", "huge"])
    price = "nodes * (0.1 if vm == 'small' else 0.3 if vm == 'large' else 0.9)"
    return Space.build([kinds, Integer("nodes", 1, nodes)], price=price)


def explore(
    problem: Problem, seconds: np.ndarray, most: int = 60, failing: frozenset[int] = frozenset()
) -> tuple[tuple, Stopped | None]:
    observations: tuple = ()
    for _ in range(most):
        order = decide(problem, POLICY, observations, seed=3)
        if isinstance(order, Stopped):
            return observations, order
        took = float(seconds[order.row])
        ran = min(took, order.timeout_s)
        usd = problem.billing.charge(ran, float(problem.price[order.row]), boots=order.boots)
        if order.row in failing:
            outcome = Outcome(End.FAILED, ran, usd, reason=FailureReason.OOM)
        else:
            outcome = Outcome(End.FINISHED if took <= order.timeout_s else End.TIMEOUT, ran, usd)
        observations = (*observations, observe(problem, POLICY, observations, order, outcome))
        assert sum(seen.outcome.charged_usd for seen in observations) <= problem.budget.usd * (1 + 1e-9)
    return observations, None


def scaled(table: Space, work: float = 4000.0) -> np.ndarray:
    cores = np.array([{"small": 1, "large": 4, "huge": 9}[vm] for vm in table.column("vm")]) * table.column("nodes")
    return 30 + work / cores + 3 * np.asarray(table.column("nodes"), dtype=float)


def test_it_finds_the_optimum_of_a_plain_job_and_stops() -> None:
    problem = Problem(space(10), constraints=(Constraint("time", 600.0),))
    seconds = scaled(problem.space)
    cost = np.where(seconds <= 600, seconds * problem.price, np.inf)
    observations, stopped = explore(problem, seconds)
    best = recommend(problem, POLICY, observations, seed=3)
    assert stopped is not None
    assert best is not None
    assert best.cost_usd <= 1.1 * cost.min()
    assert len(observations) < len(problem.space)


@pytest.mark.parametrize(
    "billing",
    [Billing(), Billing(minimum_s=60, boot_s=45), Billing(granularity_s=3600)],
    ids=["second", "minimum", "hour"],
)
def test_it_never_exceeds_a_small_budget(billing: Billing) -> None:
    problem = Problem(space(8), constraints=(Constraint("time", 900.0),), budget=Budget(usd=0.6), billing=billing)
    _, stopped = explore(problem, scaled(problem.space))
    assert stopped is not None
    assert stopped.kind in (StopReason.BUDGET, StopReason.CONVERGED)


def test_it_exhausts_a_space_of_three_rows() -> None:
    problem = Problem(space(1), constraints=(Constraint("time", 1e6),))
    observations, stopped = explore(problem, np.array([500.0, 600.0, 700.0]))
    assert stopped is not None
    assert recommend(problem, POLICY, observations, seed=3) is not None


def test_it_continues_when_no_run_is_feasible() -> None:
    """Every observation is a lower bound, up to the last row."""
    problem = Problem(space(6), constraints=(Constraint("time", 10.0),))
    observations, stopped = explore(problem, scaled(problem.space))
    assert {seen.outcome.end for seen in observations} == {End.TIMEOUT}
    assert len(observations) == len(problem.space)
    assert stopped is not None
    assert stopped.kind is StopReason.EXHAUSTED
    assert recommend(problem, POLICY, observations, seed=3) is None


def test_constant_times() -> None:
    problem = Problem(space(6), constraints=(Constraint("time", 600.0),))
    observations, _ = explore(problem, np.full(len(problem.space), 300.0))
    best = recommend(problem, POLICY, observations, seed=3)
    assert best is not None
    assert best.row == int(np.argmin(problem.price))


def test_failed_configurations_are_not_repeated() -> None:
    problem = Problem(space(6), constraints=(Constraint("time", 600.0),))
    failing = frozenset(range(0, len(problem.space), 3))
    observations, _ = explore(problem, scaled(problem.space), failing=failing)
    rows = [seen.row for seen in observations if seen.order.plan.purpose is not Purpose.CONFIRM]
    assert len(rows) == len(set(rows))
    assert all(seen.outcome.reason is None for seen in observations if seen.order.plan.purpose is Purpose.CONFIRM)
    best = recommend(problem, POLICY, observations, seed=3)
    assert best is not None
    assert best.row not in failing


def test_without_a_deadline_it_minimises_cost_alone() -> None:
    problem = Problem(space(8))
    seconds = scaled(problem.space)
    observations, _ = explore(problem, seconds)
    best = recommend(problem, POLICY, observations, seed=3)
    assert best is not None
    assert best.cost_usd <= 1.25 * (seconds * problem.price).min()


def test_several_workers_start_with_the_cheapest() -> None:
    problem = Problem(space(6), constraints=(Constraint("time", 600.0),))
    pending: tuple = ()
    for _ in range(4):
        order = decide(problem, POLICY, (), seed=3, pending=pending)
        assert not isinstance(order, Stopped)
        pending = (*pending, order)
    assert sorted(problem.price[[order.row for order in pending]]) == sorted(problem.price)[:4]


def searched(accuracy: np.ndarray, limit: str, seed: int) -> tuple[tuple, Stopped | None]:
    """All runs of a search whose 75 configurations have these accuracies, and why it ended."""
    problem = Problem(space(25), constraints=(Constraint.parse(limit),))
    seconds = 3000.0 / problem.price**0.8 * float(problem.price.min()) ** 0.8
    observations: tuple = ()
    while True:
        order = decide(problem, POLICY, observations, seed=seed)
        if isinstance(order, Stopped):
            return observations, order
        if (met := accuracy[order.row]) >= problem.constraints[0].bound:
            return observations, None
        ran = float(seconds[order.row])
        usd = problem.billing.charge(ran, float(problem.price[order.row]), boots=order.boots)
        outcome = Outcome(End.FINISHED, ran, usd, {"accuracy": float(met)})
        observations = (*observations, observe(problem, POLICY, observations, order, outcome))


def test_a_hopeless_search_ends_long_before_every_configuration_was_run() -> None:
    accuracy = 0.5 + 0.1 * np.linspace(0.0, 1.0, 75)
    observations, stopped = searched(accuracy, "accuracy >= 0.9", seed=0)
    assert stopped is not None
    assert stopped.kind is StopReason.CONVERGED
    assert stopped.reason.startswith(
        "no configuration is likely enough to meet the constraints: one more dollar of search would be "
    )
    assert 45 <= len(observations) <= 60
    assert max(seen.order.plan.chance_rate for seen in observations[-2:]) < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_a_search_is_not_given_up_because_a_model_is_too_sure_of_a_cliff(seed: int) -> None:
    """One configuration in seven works; of the others the model learns that all are equally bad."""
    accuracy = np.where(np.random.default_rng(seed).permutation(75) < 11, 0.95, 0.1)
    _, stopped = searched(accuracy, "accuracy >= 0.9", seed=seed)
    assert stopped is None, "a run met the limit"
