"""A controller that hangs, refuses, answers garbage or vanishes: a real one, or commands that only look like Slurm's."""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import eventually, processes_below
from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.client import SlurmClient
from lynceus.executors.slurm.command import Command, UnreachableError
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.problem.billing import Billing
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executor_outages import outage_checks
from lynceus.trial.outcome import End, FailureReason
from slurm_bench import SlurmBench

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel")
GARBAGE = {
    "bytes": "head -c 3000 /dev/urandom; printf '\\033[2J\\000\\n'",
    "a flood": "exec yes 'JOBID|STATE|REASON|NODELIST|NAME|COMMENT'",
    "silence": "sleep 600 & sleep 600",
    "nothing": "exit 0",
    "words": "echo 'batch script: invalid partition' >&2; exit 1",
}


def make(problem: Problem, job: JobCommand, root: Path) -> SlurmExecutor:
    options = SlurmOptions.model_validate({"python": sys.executable, "poll": 0.2})
    return SlurmExecutor(ExecutorContext(problem, job, root), options)


@contextlib.contextmanager
def commands_that(script: str, folder: Path, *names: str) -> Iterator[None]:
    """Commands of these names that do this, instead of Slurm's."""
    before = os.environ["PATH"]
    folder.mkdir()
    for name in names or COMMANDS:
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    os.environ["PATH"] = f"{folder}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextlib.contextmanager
def hanging(slurm: SlurmBench) -> Iterator[None]:
    pid = int((slurm.folder / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def stopped(slurm: SlurmBench) -> Iterator[None]:
    slurm.stop_controller(signal.SIGTERM)
    try:
        yield
    finally:
        slurm.start_controller()


def fault(kind: str, slurm: SlurmBench, folder: Path) -> contextlib.AbstractContextManager[None]:
    if kind == "hangs":
        return hanging(slurm)
    return stopped(slurm) if kind == "refuses" else commands_that(GARBAGE[kind], folder / "bin")


LAUNCHED, CANCELLED_EARLY, ENDS, CANCELLED = outage_checks()
QUICK = [("hangs", ENDS), ("bytes", LAUNCHED), ("a flood", CANCELLED), ("words", CANCELLED_EARLY)]
ALL = [(kind, name) for kind in ("hangs", "refuses", *GARBAGE) for name in outage_checks()]


@pytest.mark.parametrize(
    ("kind", "name"), [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in ALL if one not in QUICK)]
)
def test_the_slurm_executor_survives_outages(slurm: SlurmBench, kind: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    outage_checks()[name](ExecutorHarness(make, folder), lambda: fault(kind, slurm, tmp_path))
    eventually(lambda: processes_below(tmp_path) == set())
    slurm.wait_until_idle()


@pytest.mark.parametrize(
    "answer",
    [
        "echo 'Submitted, maybe'",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("sleep 600", "kill -9 $$", "echo 'sbatch: error: timed out' >&2; exit 1")
        ),
    ],
)
def test_a_submission_whose_answer_is_lost_is_not_repeated(slurm: SlurmBench, answer: str, tmp_path: Path) -> None:
    """An sbatch that submits the job and then says nothing, nonsense, or that it could not."""
    folder = tmp_path / "study"
    folder.mkdir()
    harness = ExecutorHarness(make, folder)
    script = f'echo >> {tmp_path}/submitted; {shutil.which("sbatch")} "$@" > /dev/null; {answer}'
    with harness.executor(harness.job('echo "$LYNCEUS_TRIAL" >> "$FOLDER/log"; sleep 1')) as executor:
        with commands_that(script, tmp_path / "bin", "sbatch"):
            ticket = executor.launch(harness.request())
            outage = executor.outage()
            assert outage is not None
            assert outage.detail.startswith("sbatch")
            outcome = harness.wait(executor, ticket)
        assert outcome.end is End.FINISHED
        assert executor.outage() is None
    assert harness.lines() == ["0"]
    assert (tmp_path / "submitted").read_text() == "\n"
    known = [job for job in SlurmClient().jobs(60.0).values() if f"/{harness.identity}/" in job.comment]
    assert len(known) == 1


def test_a_run_that_could_not_be_submitted_costs_nothing(slurm: SlurmBench, tmp_path: Path) -> None:
    """Not even the boot that a run of this study would be charged."""
    harness = ExecutorHarness(make, tmp_path)
    problem = harness.problem(Billing(boot_s=30.0, fee_usd=5.0))
    options = SlurmOptions.model_validate({"python": sys.executable, "patience": 0.5})
    with commands_that("exit 1", tmp_path / "bin"):
        executor = SlurmExecutor(ExecutorContext(problem, harness.job("true"), tmp_path / "runs"), options)
        outcome = harness.wait(executor, executor.launch(harness.request()))
        executor.close()
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.INFRA, 0.0)
    assert outcome.detail == "not started: the Slurm controller cannot be reached (sbatch ended with exit code 1)"


def test_a_job_of_somebody_else_is_not_taken_for_ours(slurm: SlurmBench, tmp_path: Path) -> None:
    """An sbatch that answers with the number of another job: that one is neither watched nor cancelled."""
    other = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600").strip()
    harness = ExecutorHarness(make, tmp_path)
    with harness.executor(harness.job("true")) as executor:
        with commands_that(f"echo {other}", tmp_path / "bin", "sbatch"):
            ticket = executor.launch(harness.request())
        executor.cancel(ticket)
        outcome = harness.wait(executor, ticket)
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.USER, 0.0)
    assert slurm.jobs()[0].startswith(other)
    slurm.command("scancel", other)


def test_an_executor_leaves_no_command_behind(slurm: SlurmBench, tmp_path: Path) -> None:
    harness = ExecutorHarness(make, tmp_path)
    script = f"echo $$ >> {tmp_path}/pids; sleep 600 & echo $! >> {tmp_path}/pids; wait"
    with commands_that(script, tmp_path / "bin"), harness.executor(harness.job("true")) as executor:
        began = time.monotonic()
        executor.cancel(executor.launch(harness.request()))
        assert time.monotonic() - began < 15.0
    harness.check_all_ended()


def test_a_command_is_killed_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lynceus.executors.slurm.command._LONGEST_S", 0.5)
    one = Command(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"])
    assert one.answer(0.1) is None
    with pytest.raises(UnreachableError, match="sh did not answer in 0 s"):
        one.answer(30.0)
    eventually(lambda: not _is_running(int((tmp_path / "pid").read_text())))
    with pytest.raises(UnreachableError, match="cannot be started"):
        Command(["/no/such/squeue"])


def _is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
