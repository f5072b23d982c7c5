"""Several trials at a time, on whatever executor: the budget holds with every open trial, and nobody takes the others' share."""

from __future__ import annotations

import math
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lynceus.conduct import Conduct
from lynceus.durable import open_study
from lynceus.engine import explore
from lynceus.errors import InputError
from lynceus.executor import Executor, PretendedClock, TableExecutor, WallClock
from lynceus.executor.command import LocalJob
from lynceus.executor.interrupting import Interrupting
from lynceus.executor.local import LocalExecutor
from lynceus.executor.table import Measurements
from lynceus.history import End, Order
from lynceus.policy import preset
from lynceus.problem import Budget, Limit, Problem
from lynceus.restarts import Restarts
from lynceus.space import Integer, Space
from lynceus.study import Study


def problem_of(usd: float, *limits: str, spot: bool = False) -> Problem:
    space = Space.build([Integer("n", 1, 12)], price="n * 3600")
    restarts = Restarts(np.full(12, 0.5), np.full(12, -1)) if spot else None
    return Problem(space, limits=tuple(map(Limit.parse, limits)), budget=Budget(usd), restarts=restarts)


class Watch:
    """Looks at the money whenever a trial is ordered."""

    def __init__(self, study: Study, usd: float) -> None:
        self.study, self.usd, self.most_open = study, usd, 0

    def __call__(self, order: Order) -> None:
        assert math.isfinite(order.reserved_usd)
        assert self.study.spent_usd + self.study.reserved_usd <= self.usd * (1 + 1e-9)
        self.most_open = max(self.most_open, len(self.study.pending))


@pytest.mark.skipif(sys.platform != "linux", reason="local runs need Linux")
@pytest.mark.parametrize("kind", ["local", "spot"])
@pytest.mark.parametrize("limits", [(), ("runtime <= 5s",)], ids=["uncapped", "capped"])
def test_four_real_processes_at_a_time(tmp_path: Path, kind: str, limits: tuple[str, ...]) -> None:
    usd = 60.0
    problem = problem_of(usd, *limits, spot=kind == "spot")
    study = Study(problem, preset("random"), seed=2, conduct=Conduct(max_failures=0))
    local = LocalExecutor(problem, LocalJob("sleep 0.3", workdir=tmp_path), tmp_path / "runs")
    executor: Executor = Interrupting(local, problem, 1) if kind == "spot" else local
    watch = Watch(study, usd)
    try:
        explore(study, executor, WallClock(), parallel=4, ordered=watch)
    finally:
        local.close()
    assert watch.most_open == 4
    assert not study.pending
    assert study.spent_usd <= usd
    assert study.spent_usd == pytest.approx(math.fsum(seen.outcome.charged_usd for seen in study.history))


@pytest.mark.parametrize("parallel", [1, 2, 4, 8])
def test_a_replayed_table_at_any_width(parallel: int) -> None:
    usd = 3000.0
    problem = problem_of(usd)
    clock = PretendedClock()
    study = Study(problem, preset("lynceus"), seed=1, clock=clock)
    watch = Watch(study, usd)
    measured = Measurements(np.linspace(120, 20, 12))
    explore(study, TableExecutor(problem, measured, clock), clock, parallel=parallel, ordered=watch)
    assert watch.most_open == parallel
    assert study.spent_usd <= usd
    assert any(seen.outcome.end is End.FINISHED for seen in study.history)


def test_workers_of_one_trial_each_leave_each_other_their_share(tmp_path: Path) -> None:
    """Three workers, runs that nothing caps: with `parallel: 3` each reserves a third, otherwise the first takes it all."""
    problem, policy = problem_of(300.0), preset("random")
    for width, open_trials in ((3, 3), (1, 1)):
        url, conduct = f"sqlite:///{tmp_path}/{width}.db", Conduct(parallel=width)
        workers = [
            open_study(url, "shared", problem, policy, load_if_exists=bool(place), conduct=conduct)
            for place in range(3)
        ]
        orders = [order for worker in workers if (order := worker.order()) is not None]
        assert len(orders) == open_trials
        assert math.fsum(order.reserved_usd for order in orders) <= 300.0 * (1 + 1e-9)
        assert all(order.reserved_usd == pytest.approx(300.0 / width, rel=1e-6) for order in orders)
        assert workers[0].order() is None, "the money is reserved to the last cent"


def test_workers_together_never_overdraw_the_budget(tmp_path: Path) -> None:
    """Three threads with a study object each, on one storage: what they spend together stays within the budget."""
    url, problem, policy = f"sqlite:///{tmp_path}/s.db", problem_of(200.0), preset("random")
    conduct = Conduct(parallel=3)
    studies = [
        open_study(url, "shared", problem, policy, load_if_exists=bool(place), conduct=conduct) for place in range(3)
    ]
    failures: list[BaseException] = []

    def work(study: Study) -> None:
        try:
            while (order := study.order()) is not None:
                study.refresh()
                assert study.spent_usd + study.reserved_usd <= 200.0 * (1 + 1e-9)
                seconds = min(10.0, order.cap_s)
                state = "COMPLETE" if order.cap_s > 10.0 else "TIMEOUT"
                study.tell(order.number, runtime=seconds, state=state)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    studies[0].refresh()
    assert studies[0].spent_usd <= 200.0 * (1 + 1e-9)
    assert len(studies[0].history) >= 3


def test_a_width_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="parallel is 0"):
        Conduct(parallel=0)
