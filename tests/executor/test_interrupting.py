"""Spot machines rehearsed: runs are really ended, charged for what ran, tried again, moved, and survive a crash of ours."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lynceus.conduct import Conduct
from lynceus.engine import explore
from lynceus.executor import Request, WallClock
from lynceus.executor.command import LocalJob
from lynceus.executor.interrupting import Interrupting
from lynceus.executor.local import LocalExecutor
from lynceus.executor.table import Measurements, PretendedClock, TableExecutor
from lynceus.executor.worlds import Interruptions
from lynceus.history import End, Outcome, Reason
from lynceus.policy import TIMEOUTS, preset
from lynceus.problem import Budget, Problem
from lynceus.restarts import Restarts
from lynceus.space import Categorical, Integer, Space
from lynceus.study import Study
from lynceus.testing import Ground, executor_checks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="local runs need Linux")


def problem_of(rate_per_s: float, usd: float = 1e3) -> Problem:
    space = Space.build(
        [Integer("n", 1, 3), Categorical("use_spot", (True, False))], price="(1 if use_spot else 4) * 3600"
    )
    spot = space.columns["use_spot"].astype(bool)
    restarts = Restarts(np.where(spot, rate_per_s, 0.0), np.where(spot, np.arange(len(space)) + 1, -1), 2)
    return Problem(space, budget=Budget(usd), restarts=restarts, testable=spot)


@contextmanager
def market(problem: Problem, folder: Path, command: str, seed: int = 0) -> Iterator[Interrupting]:
    executor = Interrupting(LocalExecutor(problem, LocalJob(command, workdir=folder), folder / "runs"), problem, seed)
    try:
        yield executor
    finally:
        executor.close()


def collected(executor: Interrupting, ticket: str) -> Outcome:
    while (outcome := executor.collect(ticket)) is None:
        time.sleep(0.01)
    return outcome


def test_a_run_on_spot_machines_is_ended_and_charged_for_what_ran(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=20.0)
    with market(problem, tmp_path, "echo $$ > pid; exec sleep 60") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = collected(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.PREEMPTED)
    assert outcome.seconds < 30
    assert outcome.charged_usd == pytest.approx(outcome.seconds * float(problem.price[0]))
    assert "taken back after" in outcome.detail
    pid = tmp_path / "pid"
    number = pid.read_text().strip() if pid.exists() else ""  # it may have been ended before it wrote
    assert not number or not Path("/proc", number).exists(), "the job is really gone"


def test_machines_on_demand_stay_and_a_person_is_no_cloud(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=1e3)
    with market(problem, tmp_path, "sleep 0.3") as executor:
        ticket = executor.launch(Request("s", 0, 1, problem.space.point(1), math.inf, True))
        assert collected(executor, ticket).end is End.FINISHED
    calm = problem_of(rate_per_s=1e-9)
    with market(calm, tmp_path, "sleep 60") as executor:
        ticket = executor.launch(Request("s", 1, 0, calm.space.point(0), math.inf, True))
        executor.cancel(ticket)
        assert collected(executor, ticket).reason is Reason.USER


def test_another_process_sees_the_same_interruption(tmp_path: Path) -> None:
    """Whoever looked after the run is gone: the run's directory says that it was the cloud who ended it."""
    problem = problem_of(rate_per_s=50.0)
    with market(problem, tmp_path, "sleep 60") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        while not Path(ticket, "taken-back").exists():
            executor.collect(ticket)
            time.sleep(0.01)
    with market(problem, tmp_path, "sleep 60") as later:
        assert collected(later, ticket).reason is Reason.PREEMPTED


def test_a_job_says_by_its_exit_code_that_it_was_preempted(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=1e-9)
    with market(problem, tmp_path, "sleep 0.1; exit 85") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = collected(executor, ticket)
    assert outcome.reason is Reason.PREEMPTED
    assert outcome.charged_usd == pytest.approx(outcome.seconds * float(problem.price[0]))


def test_a_study_on_spot_machines_ends_with_every_second_accounted_for(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=8.0)
    study = Study(problem, preset("sweep"), conduct=Conduct(retries_preempted=1, max_failures=3))
    with market(problem, tmp_path, "sleep 0.4", seed=3) as executor:
        explore(study, executor, WallClock())
    runs = study.history
    preempted = [seen for seen in runs if seen.outcome.reason is Reason.PREEMPTED]
    moved = [seen for seen in runs if seen.order.plan.why.startswith("moved to on-demand")]
    assert preempted
    assert moved, "a run of 0.4 s at 8 interruptions per second hardly comes through twice"
    for seen in moved:
        spot_row = seen.row - 1
        assert sum(one.row == spot_row for one in preempted) == 2
        assert seen.outcome.end is not End.FAILED
    for seen in runs:
        assert seen.outcome.charged_usd == pytest.approx(seen.outcome.seconds * float(problem.price[seen.row]))
    assert study.spent_usd == pytest.approx(math.fsum(seen.outcome.charged_usd for seen in runs))


def test_the_money_paid_in_replay_is_what_the_formula_expects() -> None:
    """Whole studies in a world of interruptions: on average a configuration costs what `Problem.cost` says."""
    seconds, rate = 100.0, 0.01
    problem = problem_of(rate)
    measured = Measurements(np.full(6, seconds))
    patient = replace(preset("sweep"), timeout=TIMEOUTS["none"])  # runs that lose come to their end, too
    paid = []
    for seed in range(120):
        clock = PretendedClock()
        world = Interruptions(1 / rate, only="use_spot")
        study = Study(problem, patient, clock=clock, conduct=Conduct(retries_preempted=1))
        explore(study, TableExecutor(problem, measured, clock, world=world, seed=seed), clock)
        per_configuration = dict.fromkeys(range(3), 0.0)
        for seen in study.history:
            per_configuration[seen.row // 2] += seen.outcome.charged_usd
            assert seen.outcome.reason in (None, Reason.PREEMPTED)
        paid += list(per_configuration.values())
    error = float(np.std(paid) / math.sqrt(len(paid)))
    assert np.mean(paid) == pytest.approx(problem.cost(0, seconds), abs=4.5 * error)


def test_worlds_interrupt_only_what_they_are_told_to() -> None:
    problem = problem_of(0.01)
    clock = PretendedClock()
    world = Interruptions(1e-6, only="use_spot")
    executor = TableExecutor(problem, Measurements(np.full(6, 50.0)), clock, world=world, seed=1)
    ends = []
    for number, row in enumerate((0, 1)):
        ticket = executor.launch(Request("s", number, row, problem.space.point(row), math.inf, True))
        clock.sleep(1e6)
        outcome = executor.collect(ticket)
        assert outcome is not None
        ends.append(outcome.reason)
    assert ends == [Reason.PREEMPTED, None]


JOB = """\
name: spot
run: sleep 0.5
resources:
  infra: aws/us-east-1
  instance_type: [m5.large, m5.xlarge]
  use_spot: true
  spot: {rate_per_hour: 12000, interruptions: 2, rehearse: true}
budget: {cost: 1 USD}
policy: sweep
trial: {timeout: none}
"""


def test_the_command_line_survives_its_death_between_interruptions(tmp_path: Path) -> None:
    """Killed again and again, then resumed to the end: nothing is charged twice and nothing is lost."""
    (tmp_path / "job.yaml").write_text(JOB)
    environment = {**os.environ, "LYNCEUS_HOME": str(tmp_path / "home")}
    environment.pop("LYNCEUS_STORAGE", None)
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y", "-o", "json"]
    for trials in (1, 2):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        started = 0
        for line in process.stderr:
            started += "starts:" in line
            if started == trials:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    told = subprocess.run(
        [sys.executable, "-m", "lynceus.cli", "trials", "spot", "-o", "json"],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    rows = json.loads(told.stdout)
    assert [row["number"] for row in rows] == list(range(len(rows)))
    for machine in ("m5.large", "m5.xlarge"):
        mine = [row for row in rows if row["params"]["instance_type"] == machine]
        on_spot = [row for row in mine if row["params"]["use_spot"]]
        on_demand = [row for row in mine if not row["params"]["use_spot"]]
        if on_spot[-1]["state"] == "COMPLETE":
            assert not on_demand
        else:
            assert [row["reason"] for row in on_spot] == ["preempted", "preempted"]
            assert [row["state"] for row in on_demand] == ["COMPLETE"]
    for row in rows:
        assert row["charged_usd"] == pytest.approx(row["runtime_s"] * row["price_usd_per_hour"] / 3600)


def test_outcomes_that_nobody_forced_stay_as_they_are(tmp_path: Path) -> None:
    problem = problem_of(1e-9)
    with market(problem, tmp_path, "exit 3") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = collected(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.JOB)


def around_local(problem: Problem, job: LocalJob, root: Path) -> Interrupting:
    return Interrupting(LocalExecutor(problem, job, root), problem, seed=0)


@pytest.mark.parametrize("name", executor_checks())
def test_a_rehearsal_keeps_every_promise_of_an_executor(name: str, tmp_path: Path) -> None:
    executor_checks()[name](Ground(around_local, tmp_path))
