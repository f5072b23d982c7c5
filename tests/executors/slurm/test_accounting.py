"""A real slurmdbd: limits of accounts and QOS, with clear messages and waiting where that helps, and what killed jobs used."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local_runs import Bench, eventually, problem_of, processes_below
from lynceus.errors import InputError
from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.supervisor import files
from lynceus.trial.outcome import End, FailureReason
from slurm_accounting import missing, slurm_with_accounts
from slurm_bench import SlurmBench, processes_of

pytestmark = pytest.mark.slow

COMMANDS = (
    "add account lab",
    "add qos one MaxSubmitJobsPerUser=1",
    "add qos single MaxJobsPerUser=1",
    "add qos tiny MaxTRESPerJob=cpu=1",
    "add qos strict MaxTRESPerJob=cpu=1 Flags=DenyOnLimit",
    "add user root account=lab qos=normal,one,single,tiny,strict",
)
FAST = {"python": sys.executable, "poll": 0.2, "account": "lab"}
WAITS = (
    'touch "at-$LYNCEUS_TRIAL"; until [ -e "go-$LYNCEUS_TRIAL" ]; do sleep 0.05; done; echo \'::lynceus {"loss": 3}\''
)

MakeRuns = Callable[..., Bench]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmBench]:
    if reason := missing():
        pytest.skip(reason)
    with slurm_with_accounts(tmp_path_factory.mktemp("accounts"), *COMMANDS) as bench:
        yield bench


class AccountedRuns(Bench):
    """Runs on the cluster for an account, with the interface of local ones."""

    def __init__(self, root: Path, job: JobCommand, **options: object) -> None:
        self.root, self.job, self.problem = root, job, problem_of()
        context = ExecutorContext(self.problem, job, root)
        self.executor: Any = SlurmExecutor(context, SlurmOptions.model_validate({**FAST, **options}))


@pytest.fixture
def runs(cluster: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeRuns]:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    yield lambda run, **options: AccountedRuns(
        tmp_path / "runs", JobCommand(run, workdir=tmp_path, grace_s=0.3), **options
    )
    eventually(lambda: processes_below(tmp_path) == set())
    eventually(lambda: cluster.jobs() == [])


def test_a_submission_beyond_the_limit_is_retried(runs: MakeRuns, tmp_path: Path) -> None:
    """The second job is refused as long as the first one is in the queue; both finish."""
    one = runs(WAITS, qos="one")
    first = one.launch()
    eventually((tmp_path / "at-0").exists)
    second = one.launch(number=1)
    assert one.executor.collect(second) is None
    note = files.read_json(f"{second}/slurm.json")
    assert note is not None
    assert "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy" in note["trouble"]
    (tmp_path / "go-0").touch()
    (tmp_path / "go-1").touch()
    assert one.wait(first).metrics == {"loss": 3.0}
    assert one.wait(second).metrics == {"loss": 3.0}


def test_a_submission_that_stays_beyond_the_limit_fails(runs: MakeRuns, tmp_path: Path) -> None:
    holder = runs(WAITS, qos="one")
    held = holder.launch()
    eventually((tmp_path / "at-0").exists)
    one = runs(WAITS, qos="one", patience=1.0)
    outcome = one.wait(one.launch(number=1))
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, FailureReason.INFRA, 0.0)
    assert "not started: Slurm does not accept the job now: QOSMaxSubmitJobPerUserLimit" in outcome.detail
    (tmp_path / "go-0").touch()
    assert holder.wait(held).end is End.FINISHED


def test_a_job_beyond_the_limit_on_running_jobs_waits_in_the_queue(
    runs: MakeRuns, cluster: SlurmBench, tmp_path: Path
) -> None:
    one = runs(WAITS, qos="single")
    tickets = [one.launch(), one.launch(number=1)]
    eventually(lambda: "QOSMaxJobsPerUserLimit" in cluster.command("squeue", "--noheader", "--format=%r"))
    for name in ("go-0", "go-1"):
        (tmp_path / name).touch()
    assert [one.wait(ticket).metrics for ticket in tickets] == [{"loss": 3.0}] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qos": "strict", "cpus": 2}, "QOSMaxCpuPerJobLimit; Job violates accounting/QOS policy"),
        ({"account": "nobody"}, "Invalid account or account/partition combination"),
        ({"qos": "nope"}, "Invalid qos specification"),
    ],
)
def test_jobs_that_an_account_never_allows_are_refused_at_once(
    runs: MakeRuns, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=f"Slurm refuses the job: {message}.*; correct the section executor"):
        runs("true", **options).launch()


def test_a_job_that_is_too_large_for_its_account_is_cancelled(runs: MakeRuns) -> None:
    """Without the flag DenyOnLimit, Slurm accepts the job and lets it wait for ever."""
    one = runs("true", qos="tiny", cpus=2)
    outcome = one.wait(one.launch())
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, FailureReason.JOB, 0.0)
    assert "the job can never start (Slurm's reason: QOSMaxCpuPerJobLimit)" in outcome.detail


HUNGRY = (
    'python3 -c \'import pathlib, time; held = b"x" * (200 << 20); time.sleep(3); '
    'pathlib.Path("ready").touch(); time.sleep(1000)\''
)


def test_a_run_whose_supervisor_was_killed_has_the_usage_that_slurm_measured(runs: MakeRuns, tmp_path: Path) -> None:
    one = runs(HUNGRY)
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    note = files.read_json(f"{ticket}/slurm.json")
    assert note is not None
    for process in processes_of(note["job"], with_slurm=False):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA), outcome
    assert outcome.usage is not None
    assert 200 << 20 <= outcome.usage.peak_memory_bytes <= 400 << 20
    assert 0.0 <= outcome.usage.cpu_s <= 10.0
