"""What Slurm remembers of a job whose supervisor was killed: its usage and why it ended, where there is accounting; nothing is made up."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from local_runs import eventually
from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm import accounting
from lynceus.executors.slurm.accounting import JobAccount, ask_account, read_account
from lynceus.executors.slurm.client import SlurmJob
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.job_states import add_cause, outcome_from_state, remembered
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.status import supervisor_died
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason
from lynceus.trial.usage import Usage
from slurm_bench import SlurmBench, processes_of

RECORDED = """\
1|FAILED||00:01.359|||cheap1|lynceus-a-0-c0ffee
1.batch|CANCELLED|215355392|00:01.359|1.61M|0.00M|cheap1|batch
"""
"""What sacct printed of a job whose processes were killed."""
USAGE = {"peak_memory_bytes": 215355392.0, "cpu_s": 1.359, "read_bytes": 1.61 * 2**20, "written_bytes": 0.0}
REQUEST = {"cap_s": 2.0, "grace_s": 5.0, "run": "c0ffee"}


def make(problem: Problem, job: JobCommand, root: Path) -> SlurmExecutor:
    options = SlurmOptions.model_validate({"python": sys.executable, "poll": 0.2})
    return SlurmExecutor(ExecutorContext(problem, job, root), options)


def test_an_account_is_read_as_sacct_prints_it() -> None:
    account = read_account(RECORDED, "1")
    assert account == JobAccount("FAILED", "cheap1", "lynceus-a-0-c0ffee", USAGE)
    assert Usage.read(account.usage) == Usage(**USAGE)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("1|CANCELLED by 1000||00:00:00|||None assigned|a|b\n", "CANCELLED"),
        ("1|OUT_OF_MEMORY||00:01|||n1|a\n1.batch|OUT_OF_MEMORY|||||n1|batch\n", "OUT_OF_MEMORY"),
        ("1|FAILED||00:01|||n1|a\n1.batch|FAILED|0|00:01|0|0|n1|batch\n", "FAILED"),
        ("1|FAILED||00:01|||n1|a\n1.batch|FAILED|many|00:01|0|0|n1|batch\n", "FAILED"),
        ("1|FAILED||00:01|||n1|a\n11.batch|FAILED|5M|00:01|0|0|n1|batch\n", "FAILED"),
    ],
)
def test_what_slurm_did_not_measure_is_not_made_up(text: str, state: str) -> None:
    account = read_account(text, "1")
    assert account is not None
    assert (account.state, account.usage) == (state, None)


@pytest.mark.parametrize("text", ["", "\n", "11|FAILED||00:01|||n1|a\n", "1|FAILED\n", "Slurm accounting is disabled"])
def test_an_answer_without_the_job_is_none(text: str) -> None:
    assert read_account(text, "1") is None


@pytest.mark.parametrize(
    ("script", "known"),
    [
        (None, False),
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1", False),
        ("exec sleep 1000", False),
        (f"printf '{RECORDED}'", True),
    ],
    ids=["missing", "off", "silent", "there"],
)
def test_a_sacct_that_does_not_help_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, known: bool
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if script is not None:
        (tools / "sacct").write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
        (tools / "sacct").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    # A sacct that answers has all the time that a busy machine needs; the test ends although one never does.
    monkeypatch.setattr(accounting, "_WAIT_S", 60.0 if known else 0.5)
    assert (ask_account("1", "lynceus-a-0-c0ffee") is not None) == known
    assert ask_account("1", "another job that had this number") is None


def test_the_accounting_says_why_a_job_ended_that_the_controller_forgot(tmp_path: Path) -> None:
    files.write_atomically(str(tmp_path / files.STARTED), {"began_s": time.time(), "groups": []})
    (tmp_path / files.ALIVE).write_text("1.5")
    account = JobAccount("OUT_OF_MEMORY", "n1", "a", USAGE)
    job = remembered(SlurmJob("7", "UNKNOWN", "", "", "", ""), account)
    record = outcome_from_state(job, REQUEST, str(tmp_path), 0, account)
    assert (record["reason"], record["detail"]) == ("oom", "out of memory, according to Slurm (n1)")
    assert (record["seconds"], record["usage"]) == (1.5, USAGE)
    running = JobAccount("RUNNING", "n1", "a", None)
    assert remembered(SlurmJob("7", "UNKNOWN", "", "", "", ""), running).state == "UNKNOWN"
    assert remembered(SlurmJob("7", "PREEMPTED", "", "", "", ""), account).state == "PREEMPTED"


def test_a_supervisor_that_slurm_killed_for_memory_does_not_hide_the_cause(tmp_path: Path) -> None:
    """The shell around it may survive and record that it died, which is not the cause."""
    files.write_atomically(str(tmp_path / files.STARTED), {"began_s": time.time(), "groups": []})
    (tmp_path / files.ALIVE).write_text("1.5")
    record = supervisor_died(str(tmp_path), {**REQUEST, "run": "no-such-run"})
    assert (record["reason"], record["outside"]) == ("infra", True)
    known = add_cause(record, SlurmJob("7", "OUT_OF_MEMORY", "", "n1", "", ""), JobAccount("", "", "", USAGE))
    assert (known["reason"], known["usage"], known["outside"]) == ("oom", USAGE, False)


def test_runs_on_slurm_have_a_usage(slurm: SlurmBench, tmp_path: Path) -> None:
    """The supervisor measures it; no accounting is needed."""
    harness = ExecutorHarness(make, tmp_path)
    _, outcome = harness.run(harness.job("python3 -c 'import time; held = str(1) * (100 << 20); time.sleep(1)'"))
    assert outcome.end is End.FINISHED, outcome
    assert outcome.usage is not None
    assert 100 << 20 <= outcome.usage.peak_memory_bytes <= 300 << 20
    assert outcome.usage.cpu_s > 0


def test_a_killed_run_is_settled_without_accounting(slurm: SlurmBench, tmp_path: Path) -> None:
    harness = ExecutorHarness(make, tmp_path)
    with harness.executor(harness.job('touch "$FOLDER/ready"; exec sleep 1000')) as executor:
        ticket = executor.launch(harness.request())
        eventually((tmp_path / "ready").exists)
        note = files.read_json(f"{ticket}/slurm.json")
        assert note is not None
        for process in processes_of(note["job"], with_slurm=False):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        outcome = harness.wait(executor, ticket)
        assert executor.collect(ticket) == outcome
    assert (outcome.end, outcome.reason, outcome.usage) == (End.FAILED, FailureReason.INFRA, None), outcome
    eventually(lambda: slurm.jobs() == [])
