"""The rehearsal of spot machines: runs are really stopped, charged, retried and moved, also after a crash of Lynceus."""

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

from local_runs import PATIENCE_S
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request, WallClock
from lynceus.executors.local import LocalExecutor
from lynceus.executors.spot_rehearsal import SpotRehearsal
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.problem.budget import Budget
from lynceus.problem.preemption import Preemption
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import executor_checks
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus_lab.worlds import Interruptions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="local runs need Linux")


def problem_of(rate_per_s: float, usd: float = 1e3) -> Problem:
    space = Space.build(
        [Integer("n", 1, 3), Categorical("use_spot", (True, False))], price="(1 if use_spot else 4) * 3600"
    )
    spot = space.columns["use_spot"].astype(bool)
    preemption = Preemption(np.where(spot, rate_per_s, 0.0), np.where(spot, np.arange(len(space)) + 1, -1), 2)
    return Problem(space, budget=Budget(usd), preemption=preemption, testable=spot)


@contextmanager
def rehearsal(problem: Problem, folder: Path, command: str, seed: int = 0) -> Iterator[SpotRehearsal]:
    executor = SpotRehearsal(
        LocalExecutor(problem, JobCommand(command, workdir=folder), folder / "runs"), problem, seed
    )
    try:
        yield executor
    finally:
        executor.close()


def wait(executor: SpotRehearsal, ticket: str) -> Outcome:
    while (outcome := executor.collect(ticket)) is None:
        time.sleep(0.01)
    return outcome


def is_charged(charged_usd: float, seconds: float, price: float) -> bool:
    """Whether a run was charged for its time and, if it was preempted, for the moment until all of its processes were gone."""
    return seconds * price * (1 - 1e-9) <= charged_usd <= (seconds + PATIENCE_S) * price


def test_a_preempted_run_is_charged_for_its_time(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=20.0)
    with rehearsal(problem, tmp_path, "echo $$ > pid; exec sleep 60") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.PREEMPTED)
    assert outcome.seconds < 30
    assert is_charged(outcome.charged_usd, outcome.seconds, float(problem.price[0]))
    assert "preempted after" in outcome.detail
    pid = tmp_path / "pid"
    number = pid.read_text().strip() if pid.exists() else ""  # it may have been stopped before it wrote the file
    assert not number or not Path("/proc", number).exists(), "the job has ended"


def test_on_demand_machines_are_not_preempted_and_cancelling_is_no_preemption(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=1e3)
    with rehearsal(problem, tmp_path, "sleep 0.3") as executor:
        ticket = executor.launch(Request("s", 0, 1, problem.space.point(1), math.inf, True))
        assert wait(executor, ticket).end is End.FINISHED
    calm = problem_of(rate_per_s=1e-9)
    with rehearsal(calm, tmp_path, "sleep 60") as executor:
        ticket = executor.launch(Request("s", 1, 0, calm.space.point(0), math.inf, True))
        executor.cancel(ticket)
        assert wait(executor, ticket).reason is FailureReason.USER


def test_another_process_sees_the_same_preemption(tmp_path: Path) -> None:
    """The run directory says that the run was preempted and not cancelled by the user."""
    problem = problem_of(rate_per_s=50.0)
    with rehearsal(problem, tmp_path, "sleep 60") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        while not Path(ticket, "taken-back").exists():
            executor.collect(ticket)
            time.sleep(0.01)
    with rehearsal(problem, tmp_path, "sleep 60") as later:
        assert wait(later, ticket).reason is FailureReason.PREEMPTED


def test_exit_code_85_means_preempted(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=1e-9)
    with rehearsal(problem, tmp_path, "sleep 0.1; exit 85") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = wait(executor, ticket)
    assert outcome.reason is FailureReason.PREEMPTED
    assert outcome.charged_usd == pytest.approx(outcome.seconds * float(problem.price[0]))


def test_a_study_on_spot_machines_retries_moves_and_charges_every_run(tmp_path: Path) -> None:
    problem = problem_of(rate_per_s=8.0)
    study = Study(problem, preset("sweep"), retry_rules=RetryRules(retries_preempted=1, max_failures=3))
    with rehearsal(problem, tmp_path, "sleep 0.4", seed=3) as executor:
        explore(study, executor, WallClock())
    runs = study.observations
    preempted = [seen for seen in runs if seen.outcome.reason is FailureReason.PREEMPTED]
    moved = [seen for seen in runs if seen.order.plan.why.startswith("moved to on-demand")]
    assert preempted
    assert moved, "a run of 0.4 s at 8 preemptions per second is almost always preempted twice"
    for seen in moved:
        spot_row = seen.row - 1
        assert sum(one.row == spot_row for one in preempted) == 2
        assert seen.outcome.end is not End.FAILED
    for seen in runs:
        assert is_charged(seen.outcome.charged_usd, seen.outcome.seconds, float(problem.price[seen.row]))
    assert study.spent_usd == pytest.approx(math.fsum(seen.outcome.charged_usd for seen in runs))


def test_the_mean_charge_in_replays_is_the_expected_cost() -> None:
    """With interruptions, the mean charge of a configuration over many studies is `Problem.cost`."""
    seconds, rate = 100.0, 0.01
    problem = problem_of(rate)
    measured = Measurements(np.full(6, seconds))
    patient = replace(preset("sweep"), timeout=TIMEOUTS["none"])  # bad runs finish, too
    charges = []
    for seed in range(120):
        clock = SimulatedClock()
        world = Interruptions(1 / rate, only="use_spot")
        study = Study(problem, patient, clock=clock, retry_rules=RetryRules(retries_preempted=1))
        explore(study, TableExecutor(problem, measured, clock, world=world, seed=seed), clock)
        per_configuration = dict.fromkeys(range(3), 0.0)
        for seen in study.observations:
            per_configuration[seen.row // 2] += seen.outcome.charged_usd
            assert seen.outcome.reason in (None, FailureReason.PREEMPTED)
        charges += list(per_configuration.values())
    error = float(np.std(charges) / math.sqrt(len(charges)))
    assert np.mean(charges) == pytest.approx(problem.cost(0, seconds), abs=4.5 * error)


def test_interruptions_affect_spot_machines_only() -> None:
    problem = problem_of(0.01)
    clock = SimulatedClock()
    world = Interruptions(1e-6, only="use_spot")
    executor = TableExecutor(problem, Measurements(np.full(6, 50.0)), clock, world=world, seed=1)
    ends = []
    for number, row in enumerate((0, 1)):
        ticket = executor.launch(Request("s", number, row, problem.space.point(row), math.inf, True))
        clock.sleep(1e6)
        outcome = executor.collect(ticket)
        assert outcome is not None
        ends.append(outcome.reason)
    assert ends == [FailureReason.PREEMPTED, None]


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


def test_a_killed_command_line_resumes_the_same_preemptions(tmp_path: Path) -> None:
    """Killed twice, then resumed to the end: no trial is lost or charged twice."""
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
    listed = subprocess.run(
        [sys.executable, "-m", "lynceus.cli", "trials", "spot", "-o", "json"],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    rows = json.loads(listed.stdout)
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
        assert is_charged(row["charged_usd"], row["runtime_s"], row["price_usd_per_hour"] / 3600)


def test_other_failures_are_not_preemptions(tmp_path: Path) -> None:
    problem = problem_of(1e-9)
    with rehearsal(problem, tmp_path, "exit 3") as executor:
        ticket = executor.launch(Request("s", 0, 0, problem.space.point(0), math.inf, True))
        outcome = wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB)


def around_local(problem: Problem, job: JobCommand, root: Path) -> SpotRehearsal:
    return SpotRehearsal(LocalExecutor(problem, job, root), problem, seed=0)


@pytest.mark.parametrize("name", executor_checks())
def test_the_rehearsal_conforms(name: str, tmp_path: Path) -> None:
    executor_checks()[name](ExecutorHarness(around_local, tmp_path))
