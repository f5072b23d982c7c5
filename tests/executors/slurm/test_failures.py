"""Problems of a real Slurm cluster: the message is clear, retries happen where they make sense, no run is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local_runs import Bench, eventually, problem_of, processes_below
from lynceus.errors import InputError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.client import SlurmClient
from lynceus.executors.slurm.executor import PLUGIN, SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.supervisor import files
from lynceus.trial.outcome import End, FailureReason, Outcome
from slurm_bench import OVER_QUOTA, SlurmBench

FAST = {"python": sys.executable, "poll": 0.2}
LONG = "echo $$ > pids; touch ready; exec sleep 1000"


class SlurmRuns(Bench):
    """Runs on the cluster, with the interface of local ones."""

    def __init__(self, root: Path, job: JobCommand, **options: object) -> None:
        self.root, self.job, self.problem = root, job, problem_of()
        context = ExecutorContext(self.problem, job, root)
        self.executor: Any = SlurmExecutor(context, SlurmOptions.model_validate({**FAST, **options}))

    def job_number(self, ticket: str) -> str:
        note = files.read_json(f"{ticket}/slurm.json")
        assert note is not None
        return str(note["job"])


MakeRuns = Callable[..., SlurmRuns]


@pytest.fixture
def runs(slurm: SlurmBench, tmp_path: Path) -> Iterator[MakeRuns]:
    def make(run: tuple[str, ...] | str, root: Path | None = None, **options: object) -> SlurmRuns:
        return SlurmRuns(root or tmp_path / "runs", JobCommand(run, workdir=tmp_path, grace_s=0.3), **options)

    yield make
    eventually(lambda: processes_below(tmp_path) == set())
    eventually(lambda: slurm.jobs() == [])


def failure(outcome: Outcome) -> tuple[FailureReason | None, str]:
    assert outcome.end is End.FAILED
    return outcome.reason, outcome.detail


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": "nope"}, "Invalid partition name"),
        ({"constraint": "gold"}, "Invalid feature specification"),
        ({"memory": "900 GB"}, "node configuration is not available"),
        ({"extra": ["--no-such-option"]}, "unrecognized option '--no-such-option'"),
        ({"gpus": 2}, "Invalid generic resource"),
    ],
)
def test_jobs_that_can_never_run_are_refused_at_once(runs: MakeRuns, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=f"Slurm refuses the job: .*{message}.*correct the section executor"):
        runs("true", **options).launch()


@pytest.mark.parametrize(
    ("options", "word"),
    [({"partition": "small", "nodes": 2}, "PartitionNodeLimit"), ({"partition": "short"}, "PartitionTimeLimit")],
)
def test_a_job_beyond_the_limits_of_its_partition_is_cancelled(
    runs: MakeRuns, options: dict[str, object], word: str
) -> None:
    reason, detail = failure(runs("true", **options).outcome(timeout_s=600.0))
    assert reason is FailureReason.JOB
    assert detail.startswith(f"the job can never start (Slurm's reason: {word}); ")


def test_max_queue_limits_the_time_in_the_queue(runs: MakeRuns, tmp_path: Path) -> None:
    holder = runs(LONG, nodes=4, exclusive=True)
    held = holder.launch()
    eventually((tmp_path / "ready").exists)
    impatient = runs("true", max_queue=0.5)
    reason, detail = failure(impatient.outcome(number=1))
    assert reason is FailureReason.INFRA
    assert detail.startswith("no capacity: it waited ")
    assert "(Slurm's reason: " in detail
    patient = runs("true")
    waiting = patient.launch(number=2)
    for _ in range(20):
        assert patient.executor.collect(waiting) is None
    holder.executor.cancel(held)
    assert failure(holder.wait(held))[0] is FailureReason.USER
    assert patient.wait(waiting).end is End.FINISHED


def test_time_in_the_queue_does_not_count(runs: MakeRuns, tmp_path: Path) -> None:
    holder = runs(LONG, nodes=4, exclusive=True)
    held = holder.launch()
    eventually((tmp_path / "ready").exists)
    waiting = holder.launch(timeout_s=2.0, number=1)
    subprocess.run(["sleep", "2.5"], check=True)
    assert holder.executor.collect(waiting) is None
    assert not Path(waiting, files.STARTED).exists()
    holder.executor.cancel(held)
    holder.wait(held)
    outcome = holder.wait(waiting)
    assert outcome.end is End.TIMEOUT
    assert 2.0 <= outcome.seconds <= outcome.charged_usd < 4.5


def test_a_temporary_refusal_is_retried(slurm: SlurmBench, runs: MakeRuns) -> None:
    one = runs("echo '::lynceus {\"loss\": 3}'")
    slurm.refuse(OVER_QUOTA)
    try:
        ticket = one.launch()
        assert one.executor.collect(ticket) is None
        note = files.read_json(f"{ticket}/slurm.json")
        assert note is not None
        assert "Job violates accounting/QOS policy" in note["trouble"]
    finally:
        slurm.refuse(None)
    assert one.wait(ticket).metrics == {"loss": 3.0}


def test_a_permanent_quota_is_reported(slurm: SlurmBench, runs: MakeRuns) -> None:
    slurm.refuse(OVER_QUOTA)
    try:
        reason, detail = failure(runs("true", patience=1.0).outcome())
    finally:
        slurm.refuse(None)
    assert reason is FailureReason.INFRA
    assert "not started: Slurm does not accept the job now: Job violates accounting/QOS policy" in detail


def test_runs_continue_while_the_controller_is_down(slurm: SlurmBench, runs: MakeRuns, tmp_path: Path) -> None:
    one = runs("touch begun-$LYNCEUS_TRIAL; while [ ! -e go ]; do sleep 0.05; done; echo '::lynceus {\"loss\": 3}'")
    running = one.launch()
    eventually((tmp_path / "begun-0").exists)
    slurm.stop_controller(signal.SIGTERM)
    try:
        waiting = one.launch(number=1)
        assert one.executor.collect(running) is None
        (tmp_path / "go").touch()
        assert one.wait(running).metrics == {"loss": 3.0}, "a run that ended while the controller was down is settled"
        assert one.executor.collect(waiting) is None
    finally:
        slurm.start_controller()
    assert one.wait(waiting).end is End.FINISHED
    slurm.wait_until_idle()


def test_a_controller_that_lost_its_state_starts_no_run_twice(
    slurm: SlurmBench, runs: MakeRuns, tmp_path: Path
) -> None:
    """A controller that was killed before it saved its state forgets the job or starts it again, but the job runs once."""
    one = runs("echo ran >> log; touch ready; sleep 3; echo '::lynceus {\"loss\": 3}'")
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    slurm.stop_controller(signal.SIGKILL)
    slurm.start_controller()
    outcome = one.wait(ticket)
    assert (tmp_path / "log").read_text().split() == ["ran"]
    record = files.read_json(f"{ticket}/{files.OUTCOME}")
    assert record is not None
    assert outcome.seconds == record["seconds"]
    assert outcome.end is End.FINISHED or outcome.reason in (FailureReason.INFRA, FailureReason.USER)
    slurm.wait_until_idle()


def test_a_failed_node_is_an_infrastructure_failure(slurm: SlurmBench, runs: MakeRuns, tmp_path: Path) -> None:
    one = runs(LONG, extra=["--nodelist=fast2"])
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    subprocess.run(["sleep", "1.5"], check=True)
    slurm.stop_node("fast2")
    try:
        reason, detail = failure(outcome := one.wait(ticket))
        assert (reason, detail) == (
            FailureReason.INFRA,
            "the node failed (fast2); charged up to the last heartbeat",
        )
        assert outcome.seconds > 0.9
        assert outcome.charged_usd == outcome.seconds
        eventually(lambda: processes_below(tmp_path) == set())
        assert one.executor.collect(ticket) == outcome, (
            "a supervisor that is still alive must not change a settled outcome"
        )
    finally:
        slurm.start_node("fast2")
        slurm.wait_until_idle()


def test_a_job_cancelled_in_slurm_was_stopped_by_the_user(slurm: SlurmBench, runs: MakeRuns, tmp_path: Path) -> None:
    one = runs(LONG)
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    slurm.command("scancel", one.job_number(ticket))
    reason, detail = failure(one.wait(ticket))
    assert reason is FailureReason.USER
    assert detail.startswith("cancelled in Slurm (scancel) after ")


def test_the_time_limit_of_slurm_is_a_backstop(slurm: SlurmBench, runs: MakeRuns, tmp_path: Path) -> None:
    one = runs(LONG)
    ticket = one.launch(timeout_s=3000.0)
    eventually((tmp_path / "ready").exists)
    limit = slurm.command("squeue", "--noheader", "--format=%l", f"--jobs={one.job_number(ticket)}").strip()
    assert limit == "52:00"
    one.executor.cancel(ticket)
    one.wait(ticket)


def test_a_run_directory_that_the_node_cannot_see(runs: MakeRuns, slurm: SlurmBench, tmp_path: Path) -> None:
    """The nodes share the disks of this machine; a private mount hides a folder from one node."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    slurm.stop_node("fast2", signal.SIGTERM)
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
               f"mount -t tmpfs none {hidden} && exec slurmd -N fast2 -c"]  # fmt: skip
    if subprocess.run(command, env=slurm.environment, check=False, capture_output=True).returncode:
        slurm.start_node("fast2")
        pytest.skip("hiding a folder needs permission to mount")
    try:
        slurm.wait_until_idle()
        reason, detail = failure(runs("true", hidden / "runs", extra=["--nodelist=fast2"]).outcome())
        assert reason is FailureReason.INFRA
        assert detail.startswith("fast2 cannot see the run directory ")
        assert detail.endswith("set executor.run_directory to a disk that all nodes share")
    finally:
        slurm.stop_node("fast2", signal.SIGTERM)
        slurm.start_node("fast2")
        slurm.wait_until_idle()


def test_a_node_without_python(runs: MakeRuns) -> None:
    reason, detail = failure(runs("true", python="/no/such/python3").outcome())
    assert reason is FailureReason.INFRA
    assert "has no Python for the supervisor; set executor.python" in detail


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs permission to mount it")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "ballast").open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def test_a_disk_that_fills_up_during_a_run_loses_no_result(runs: MakeRuns, disk: Path, tmp_path: Path) -> None:
    script = "touch ready; while [ ! -e go ]; do sleep 0.05; done; seq 100000; echo '::lynceus {\"loss\": 3}'"
    one = runs(script, disk / "runs")
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    fill(disk)
    (tmp_path / "go").touch()
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"loss": 3.0})
    assert "its output could not be saved: No space left on device" in outcome.detail


def test_a_disk_that_is_full_at_the_start_of_the_job(
    runs: MakeRuns, disk: Path, slurm: SlurmBench, tmp_path: Path
) -> None:
    holder = runs(LONG, nodes=4, exclusive=True)
    held = holder.launch(number=7)
    eventually((tmp_path / "ready").exists)
    one = runs("true", disk / "runs")
    ticket = one.launch()
    fill(disk)
    holder.executor.cancel(held)
    holder.wait(held)
    eventually(lambda: not slurm.jobs())
    (disk / "ballast").unlink()
    reason, detail = failure(one.wait(ticket))
    assert reason is FailureReason.INFRA
    assert f"the disk of the run directory {ticket} is full, according to " in detail


def test_a_full_disk_of_the_job(runs: MakeRuns, disk: Path) -> None:
    reason, detail = failure(runs(f"head -c 9000000 /dev/zero > {disk}/data").outcome())
    assert reason is FailureReason.INFRA
    assert "a disk of " in detail
    assert "No space left on device" in detail


def test_a_machine_without_slurm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    context = ExecutorContext(problem_of(), JobCommand(("true",), workdir=tmp_path), tmp_path / "runs")
    with pytest.raises(
        InputError, match="'sbatch' is not installed here; run Lynceus on a machine that can submit jobs"
    ):
        PLUGIN.make(context, SlurmOptions())


def test_a_preempted_job(slurm: SlurmBench, runs: MakeRuns, tmp_path: Path) -> None:
    low = runs(LONG, partition="low", nodes=2, exclusive=True)
    ticket = low.launch()
    eventually((tmp_path / "ready").exists)
    high = runs("true", partition="high", nodes=2, exclusive=True)
    assert high.outcome(number=1).end is End.FINISHED
    reason, detail = failure(outcome := low.wait(ticket))
    assert (reason, detail) == (FailureReason.PREEMPTED, "Slurm preempted the job (cheap[1-2])")
    assert outcome.charged_usd >= outcome.seconds > 0


def test_a_job_is_found_by_its_name_where_comments_are_rewritten(
    slurm: SlurmBench, runs: MakeRuns, tmp_path: Path
) -> None:
    one = runs(LONG)
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    job = one.job_number(ticket)
    slurm.command("scontrol", "update", f"JobId={job}", "Comment=site policy 7")
    files.write_atomically(
        f"{ticket}/slurm.json", {"tried": True}
    )  # as if Lynceus was killed before it noted the job id
    Path(ticket, files.STARTED).rename(tmp_path / "started")  # and the start is not visible yet on a slow disk
    second = SlurmRuns(one.root, one.job)
    assert second.launch() == ticket
    (tmp_path / "started").rename(Path(ticket, files.STARTED))
    assert second.job_number(ticket) == job
    second.executor.cancel(ticket)
    assert failure(second.wait(ticket))[0] is FailureReason.USER


def test_an_sbatch_whose_caller_was_killed_is_awaited(runs: MakeRuns, tmp_path: Path) -> None:
    """The next process must not submit while the orphaned sbatch may still do so."""
    one = runs("echo ran >> log")
    request = Request("study", 0, 0, one.problem.space.point(0), 60.0, True, "id")
    slow = tmp_path / "bin" / "sbatch"
    slow.parent.mkdir()
    real = subprocess.run(["which", "sbatch"], capture_output=True, text=True, check=True).stdout.strip()
    slow.write_text(
        f'#!/bin/sh\ntouch {tmp_path}/submitting; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exec {real} "$@"\n'
    )
    slow.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.environ["PATH"] = f"{slow.parent}:{os.environ['PATH']}"
        one.executor.launch(request)
        os._exit(0)
    eventually((tmp_path / "submitting").exists)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    second = SlurmRuns(one.root, one.job)
    ticket = second.executor.launch(request)
    note = files.read_json(f"{ticket}/slurm.json")
    assert note is not None
    assert note["trouble"] == "another process is submitting it"
    (tmp_path / "go").touch()
    assert second.wait(ticket).end is End.FINISHED
    assert (tmp_path / "log").read_text().split() == ["ran"]
    assert len([job for job in SlurmClient().jobs().values() if "/study/id/0/" in job.comment and str(job.comment).endswith(
        str((files.read_json(f"{ticket}/request.json") or {})["run"]))]) == 1  # fmt: skip
    assert isinstance(second.executor, SlurmExecutor)
