"""Limits of accounts and QOS, enforced by a real slurmdbd: a clear sentence, waiting where that helps, nothing lost."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local_runs import Bench, eventually, problem_of, processes_below
from lynceus.errors import InputError
from lynceus.executor.command import LocalJob
from lynceus.executor.slurm import SlurmOptions
from lynceus.executor.slurm.executor import slurm_executor
from lynceus.history import End, Reason
from lynceus.supervisor import files
from slurm_accounting import missing, slurm_with_accounts
from slurm_bench import SlurmBench

pytestmark = pytest.mark.slow

ORDERS = (
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

Make = Callable[..., Bench]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmBench]:
    if reason := missing():
        pytest.skip(reason)
    with slurm_with_accounts(tmp_path_factory.mktemp("accounts"), *ORDERS) as bench:
        yield bench


class AccountedRuns(Bench):
    """Like local runs, on the cluster, for an account."""

    def __init__(self, root: Path, job: LocalJob, **options: object) -> None:
        self.root, self.job, self.problem = root, job, problem_of()
        self.executor: Any = slurm_executor(self.problem, job, root, SlurmOptions.model_validate({**FAST, **options}))


@pytest.fixture
def runs(cluster: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    yield lambda run, **options: AccountedRuns(
        tmp_path / "runs", LocalJob(run, workdir=tmp_path, grace_s=0.3), **options
    )
    eventually(lambda: processes_below(tmp_path) == set())
    eventually(lambda: cluster.jobs() == [])


def test_a_limit_on_submitted_jobs_is_waited_for(runs: Make, tmp_path: Path) -> None:
    """The second job is refused as long as the first is in the queue; both come to their end, and nothing is lost."""
    one = runs(WAITS, qos="one")
    first = one.launch()
    eventually((tmp_path / "at-0").exists)
    second = one.launch(number=1)
    assert one.executor.collect(second) is None
    note = files.read_whole(f"{second}/slurm.json")
    assert note is not None
    assert "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy" in note["trouble"]
    (tmp_path / "go-0").touch()
    (tmp_path / "go-1").touch()
    assert one.wait(first).metrics == {"loss": 3.0}
    assert one.wait(second).metrics == {"loss": 3.0}


def test_a_limit_on_submitted_jobs_that_does_not_pass_is_named(runs: Make, tmp_path: Path) -> None:
    holder = runs(WAITS, qos="one")
    held = holder.launch()
    eventually((tmp_path / "at-0").exists)
    one = runs(WAITS, qos="one", patience=1.0)
    outcome = one.wait(one.launch(number=1))
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, Reason.INFRA, 0.0)
    assert "not started: Slurm does not take the job now: QOSMaxSubmitJobPerUserLimit" in outcome.detail
    (tmp_path / "go-0").touch()
    assert holder.wait(held).end is End.FINISHED


def test_a_limit_on_running_jobs_lets_the_next_one_wait_in_the_queue(
    runs: Make, cluster: SlurmBench, tmp_path: Path
) -> None:
    one = runs(WAITS, qos="single")
    tickets = [one.launch(), one.launch(number=1)]
    eventually(lambda: "QOSMaxJobsPerUserLimit" in cluster.command("squeue", "--noheader", "--format=%r"))
    for name in ("go-0", "go-1"):
        (tmp_path / name).touch()
    assert [one.wait(ticket).metrics for ticket in tickets] == [{"loss": 3.0}] * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"qos": "strict", "cpus": 2}, "QOSMaxCpuPerJobLimit; Job violates accounting/QOS policy"),
        ({"account": "nobody"}, "Invalid account or account/partition combination"),
        ({"qos": "nope"}, "Invalid qos specification"),
    ],
)
def test_what_an_account_never_allows_is_refused_at_once(runs: Make, options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=f"Slurm refuses the job: {words}.*; correct the section executor"):
        runs("true", **options).launch()


def test_a_job_that_is_too_large_for_its_account_leaves_the_queue(runs: Make) -> None:
    """Without the flag DenyOnLimit Slurm takes it and lets it wait for ever."""
    one = runs("true", qos="tiny", cpus=2)
    outcome = one.wait(one.launch())
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, Reason.JOB, 0.0)
    assert "it can never start: Slurm's reason is QOSMaxCpuPerJobLimit" in outcome.detail
