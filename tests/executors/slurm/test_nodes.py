"""Nodes that are slow, wrong about the time, full, or gone together with everything on them."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.client import SlurmJob
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.job_states import outcome_from_state
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.supervisor import files
from lynceus.problem.billing import Billing
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason
from slurm_bench import SlurmBench, processes_of

_ODD_PYTHON = """#!{python}
import os, runpy, sys, time
sys.argv = [one for one in sys.argv[1:] if one not in ("-I", "-S")]
{patch}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SLOW_DISK = """
def slow(real):
    return lambda *given, **more: (time.sleep(0.7), real(*given, **more))[1]
os.fsync, os.rename, os.link = slow(os.fsync), slow(os.rename), slow(os.link)
"""
WRONG_CLOCK = """
real = time.time
time.time = lambda: real() + {hours} * 3600
"""


def harness_with(patch: str, tmp_path: Path, *extra: str) -> ExecutorHarness:
    """Runs whose supervisor has a Python with a patch."""
    python = tmp_path / "python"
    python.write_text(_ODD_PYTHON.format(python=sys.executable, patch=patch))
    python.chmod(0o755)

    def make(problem: Problem, job: JobCommand, root: Path) -> SlurmExecutor:
        options = SlurmOptions.model_validate({"python": str(python), "poll": 0.2, "extra": list(extra)})
        return SlurmExecutor(ExecutorContext(problem, job, root), options)

    return ExecutorHarness(make, tmp_path)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(SLOW_DISK, marks=pytest.mark.slow, id="slow disk"),
        pytest.param(WRONG_CLOCK.format(hours=-7), id="behind"),
        pytest.param(WRONG_CLOCK.format(hours=9), marks=pytest.mark.slow, id="ahead"),
    ],
)
def test_a_slow_disk_or_a_wrong_clock_changes_no_charge(slurm: SlurmBench, patch: str, tmp_path: Path) -> None:
    harness = harness_with(patch, tmp_path)
    script = 'echo $LYNCEUS_TRIAL >> "$FOLDER/log"; echo \'::lynceus {"loss": 1}\'; sleep 0.5; [ $LYNCEUS_TRIAL = 0 ] || exec sleep 600'
    with harness.executor(harness.job(script)) as executor:
        finishes, stops = executor.launch(harness.request(0)), executor.launch(harness.request(1, timeout_s=1.5))
        outcome = harness.wait(executor, finishes)
        assert (outcome.end, dict(outcome.metrics)) == (End.FINISHED, {"loss": 1.0})
        assert 0.5 <= outcome.seconds < 20.0
        assert outcome.charged_usd == pytest.approx(outcome.seconds)
        outcome = harness.wait(executor, stops)
        assert outcome.end is End.TIMEOUT
        assert 1.5 <= outcome.seconds <= outcome.charged_usd < 20.0
    assert sorted(harness.lines()) == ["0", "1"]


@pytest.mark.slow
def test_a_node_that_is_gone_with_all_its_processes(slurm: SlurmBench, tmp_path: Path) -> None:
    """Nobody is left to write anything; its clock was ahead by hours, too."""
    harness = harness_with(WRONG_CLOCK.format(hours=5), tmp_path, "--nodelist=fast2")
    script = 'echo $$ > "$FOLDER/pids"; echo $PPID > "$FOLDER/parent"; touch "$FOLDER/ready"; exec sleep 600'
    try:
        with harness.executor(harness.job(script), harness.problem(Billing(boot_s=1.0))) as executor:
            ticket = executor.launch(harness.request())
            harness.wait_for_file(executor, ticket, "ready")
            began = time.monotonic()
            time.sleep(2.0)
            job = slurm.command("squeue", "--noheader", "--format=%i").strip()
            slurm.stop_node("fast2", signal.SIGKILL)
            for pid in processes_of(job):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            lasted = time.monotonic() - began
            outcome = harness.wait(executor, ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA), outcome
        assert 1.0 < outcome.seconds < lasted + 5.0
        assert outcome.charged_usd == pytest.approx(outcome.seconds + 1.0)
        harness.check_all_ended()
    finally:
        slurm.start_node("fast2")
        slurm.command("scontrol", "update", "nodename=fast2", "state=resume", check=False)
        slurm.wait_until_idle()


def test_slurm_stopped_a_run_that_its_supervisor_could_not_stop(tmp_path: Path) -> None:
    """It is charged for as long as Slurm let it run, not only up to its timeout."""
    files.write_atomically(str(tmp_path / files.STARTED), {"began_s": time.time(), "groups": []})
    (tmp_path / files.ALIVE).write_text("2.5")
    record = outcome_from_state(
        SlurmJob("7", "TIMEOUT", "", "n1", "", ""), {"cap_s": 2.0, "grace_s": 5.0}, str(tmp_path), 0
    )
    assert (record["end"], record["seconds"]) == ("capped", 120.0)


@pytest.mark.parametrize("state", ["NODE_FAIL", "BOOT_FAIL", "CANCELLED", "UNKNOWN", "FAILED", "OUT_OF_MEMORY"])
def test_a_run_that_never_started_costs_nothing(tmp_path: Path, state: str) -> None:
    record = outcome_from_state(SlurmJob("7", state, "", "", "", ""), {"cap_s": 2.0, "grace_s": 5.0}, str(tmp_path), 0)
    assert record["free"]
