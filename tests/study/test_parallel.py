"""Parallel trials on several executors: open trials count against the budget, and each gets a fair share of it."""

from __future__ import annotations

import math
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Executor, WallClock
from lynceus.executors.local import LocalExecutor
from lynceus.executors.spot_rehearsal import SpotRehearsal
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.preemption import Preemption
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.study.run_loop import explore
from lynceus.study.stored import open_study
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.outcome import End


def problem_of(usd: float, *constraints: str, spot: bool = False) -> Problem:
    space = Space.build([Integer("n", 1, 12)], price="n * 3600")
    preemption = Preemption(np.full(12, 0.5), np.full(12, -1)) if spot else None
    return Problem(
        space, constraints=tuple(map(Constraint.parse, constraints)), budget=Budget(usd), preemption=preemption
    )


class BudgetCheck:
    """Checks the committed budget whenever a trial is ordered."""

    def __init__(self, study: Study, usd: float) -> None:
        self.study, self.usd, self.max_open = study, usd, 0

    def __call__(self, order: Order) -> None:
        assert math.isfinite(order.reserved_usd)
        assert self.study.spent_usd + self.study.reserved_usd <= self.usd * (1 + 1e-9)
        self.max_open = max(self.max_open, len(self.study.pending))


@pytest.mark.skipif(sys.platform != "linux", reason="local runs need Linux")
@pytest.mark.parametrize("kind", ["local", "spot"])
@pytest.mark.parametrize("constraints", [(), ("runtime <= 5s",)], ids=["without-deadline", "with-deadline"])
def test_four_parallel_processes_stay_within_the_budget(
    tmp_path: Path, kind: str, constraints: tuple[str, ...]
) -> None:
    usd = 60.0
    problem = problem_of(usd, *constraints, spot=kind == "spot")
    study = Study(problem, preset("random"), seed=2, retry_rules=RetryRules(max_failures=0))
    local = LocalExecutor(problem, JobCommand("sleep 0.3", workdir=tmp_path), tmp_path / "runs")
    executor: Executor = SpotRehearsal(local, problem, 1) if kind == "spot" else local
    check = BudgetCheck(study, usd)
    try:
        explore(study, executor, WallClock(), parallel=4, ordered=check)
    finally:
        local.close()
    assert check.max_open == 4
    assert not study.pending
    assert study.spent_usd <= usd
    assert study.spent_usd == pytest.approx(math.fsum(seen.outcome.charged_usd for seen in study.observations))


@pytest.mark.parametrize("parallel", [1, 2, 4, 8])
def test_a_replay_stays_within_the_budget_at_any_parallelism(parallel: int) -> None:
    usd = 3000.0
    problem = problem_of(usd)
    clock = SimulatedClock()
    study = Study(problem, preset("lynceus"), seed=1, clock=clock)
    check = BudgetCheck(study, usd)
    measurements = Measurements(np.linspace(120, 20, 12))
    explore(study, TableExecutor(problem, measurements, clock), clock, parallel=parallel, ordered=check)
    assert check.max_open == parallel
    assert study.spent_usd <= usd
    assert any(seen.outcome.end is End.FINISHED for seen in study.observations)


def test_workers_share_the_budget_by_the_parallel_setting(tmp_path: Path) -> None:
    """Three workers, runs without a deadline: with `parallel: 3` each reserves a third, with 1 the first reserves everything."""
    problem, policy = problem_of(300.0), preset("random")
    for parallel, open_trials in ((3, 3), (1, 1)):
        url, retry_rules = f"sqlite:///{tmp_path}/{parallel}.db", RetryRules(parallel=parallel)
        workers = [
            open_study(url, "shared", problem, policy, load_if_exists=bool(index), retry_rules=retry_rules)
            for index in range(3)
        ]
        orders = [order for worker in workers if (order := worker.runs.order()) is not None]
        assert len(orders) == open_trials
        assert math.fsum(order.reserved_usd for order in orders) <= 300.0 * (1 + 1e-9)
        assert all(order.reserved_usd == pytest.approx(300.0 / parallel, rel=1e-6) for order in orders)
        assert workers[0].runs.order() is None, "the whole budget is reserved"


def test_concurrent_workers_never_exceed_the_budget(tmp_path: Path) -> None:
    """Three threads share one storage, each with its own study object; their total cost stays within the budget."""
    url, problem, policy = f"sqlite:///{tmp_path}/s.db", problem_of(200.0), preset("random")
    retry_rules = RetryRules(parallel=3)
    studies = [
        open_study(url, "shared", problem, policy, load_if_exists=bool(index), retry_rules=retry_rules)
        for index in range(3)
    ]
    failures: list[BaseException] = []

    def work(study: Study) -> None:
        try:
            while (order := study.runs.order()) is not None:
                study.runs.refresh()
                assert study.spent_usd + study.reserved_usd <= 200.0 * (1 + 1e-9)
                seconds = min(10.0, order.timeout_s)
                state = "COMPLETE" if order.timeout_s > 10.0 else "TIMEOUT"
                study.tell(order.number, runtime=seconds, state=state)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    studies[0].runs.refresh()
    assert studies[0].spent_usd <= 200.0 * (1 + 1e-9)
    assert len(studies[0].observations) >= 3


def test_parallel_below_one_is_rejected() -> None:
    with pytest.raises(InputError, match="parallel is 0"):
        RetryRules(parallel=0)
