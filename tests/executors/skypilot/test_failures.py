"""Launches that fail, clusters that are lost, full disks, an API server that does not answer."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from fake_skypilot_bench import FakeSkyPilot
from lynceus.errors import InfrastructureError
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.problem.billing import Billing
from lynceus.trial.outcome import End, FailureReason, Outcome
from skypilot_runs import StudyRuns, run, wait


def test_a_launch_without_capacity_is_retried(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.executors.skypilot.run_tracker._FIRST_PAUSE_S", 0.05)
    fake.fail(launch=("ResourcesUnavailableError", "Failed to acquire resources in all zones", 2))
    made = study()
    assert run(made.executor(), made.request(0)).end is End.FINISHED


@pytest.mark.parametrize(
    ("kind", "text", "reason", "message"),
    [
        ("ResourcesUnavailableError", "Failed to acquire resources in all zones", FailureReason.INFRA, "no capacity"),
        ("ResourcesUnavailableError", "VcpuLimitExceeded: your quota is 8 vCPUs", FailureReason.INFRA, "quota"),
        (
            "ResourcesUnavailableError",
            "Catalog does not contain any instances satisfying the request",
            FailureReason.JOB,
            "offers",
        ),
        ("ResourcesUnavailableError", "Task 'x' requires aws which is not enabled", FailureReason.INFRA, "no access"),
        ("NoCloudAccessError", "Cloud access is not set up", FailureReason.INFRA, "sky check"),
        ("NotSupportedError", "Spot instances are not supported here", FailureReason.JOB, "refuses"),
    ],
)
def test_a_launch_that_fails_has_a_message_and_no_charge(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], kind: str, text: str, reason: FailureReason, message: str
) -> None:
    fake.fail(launch=(kind, text, 99))
    made = study(patience="0s", billing=Billing(minimum_s=60, boot_s=30, fee_usd=5))
    outcome = run(made.executor(), made.request(0))
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, reason, 0.0)
    assert message in outcome.detail
    assert text.split(":")[0] in outcome.detail


def test_an_unreachable_api_server_stops_the_study_but_not_the_run(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.executors.skypilot.run_tracker._FIRST_PAUSE_S", 0.05)
    made = study(patience="1s", api_server="http://sky.example:46580")
    executor = made.executor('echo started >> "$FOLDER/log"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "log").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    fake.fail(
        stream=("ApiServerConnectionError", "refused", 1), unreachable=("ApiServerConnectionError", "refused", 999)
    )
    with pytest.raises(InfrastructureError, match=r"API server at http://sky\.example:46580 does not answer"):
        wait(executor, ticket)
    executor.leave()
    fake.fail()
    (made.folder / "go").touch()
    assert wait(made.executor(), ticket).end is End.FINISHED
    assert (made.folder / "log").read_text().split() == ["started"]


@pytest.mark.parametrize(("spot", "reason"), [(False, FailureReason.INFRA), (True, FailureReason.PREEMPTED)])
def test_a_lost_cluster_is_an_infrastructure_failure_or_a_preemption(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], spot: bool, reason: FailureReason
) -> None:
    made = study(resources={"infra": "cloud/region", "use_spot": spot})
    executor = made.executor('touch "$FOLDER/log"; sleep 600')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "log").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    fake.lose_clusters()
    outcome = wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, reason)
    assert "no longer exists" in outcome.detail
    assert outcome.charged_usd > 0, "it ran, so it is charged"


@pytest.fixture
def small_disk(fake: FakeSkyPilot) -> Iterator[None]:
    """All clusters on a disk of 2 MB."""
    folder = fake.folder / "clusters"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], check=False).returncode:
        pytest.skip("a small disk needs permission to mount it")
    yield
    subprocess.run(["umount", "-l", str(folder)], check=True)


_EVERY_PAGE_KIB = [
    pytest.param(free_kib, marks=() if free_kib % 20 == 0 else pytest.mark.slow) for free_kib in range(0, 404, 4)
]
"""What fits on a full disk, and so where a run fails, changes from page to page."""
_ROOM_FOR_THE_OUTCOME_KIB = 128


def run_with_free_space(made: StudyRuns, free_kib: int) -> tuple[SkyPilotExecutor, Outcome]:
    """A run on a node that has so much free space before anything is copied to it."""
    fill = f"head -c $(( $(df --output=avail -k . | tail -1) - {free_kib} ))k /dev/zero > fill"
    executor = SkyPilotExecutor(ExecutorContext(made.problem, made.job, made.folder / "runs", setup=fill), made.options)
    return executor, run(executor, made.request(0))


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("free_kib", _EVERY_PAGE_KIB)
def test_a_full_disk_of_the_node(fake: FakeSkyPilot, study: Callable[..., StudyRuns], free_kib: int) -> None:
    """Nothing fits, or a part of what is copied, or all of it but not the room for the outcome. The log is on the same disk."""
    made = study(keep_warm="10m")
    executor, outcome = run_with_free_space(made, free_kib)
    if free_kib > _ROOM_FOR_THE_OUTCOME_KIB and outcome.end is End.FINISHED:
        return
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert re.search(r"the disk of the (node|run directory \S+) is full", outcome.detail)
    assert free_kib < 400, "a run needs no more than this"
    assert not (made.folder / "log").exists(), "the job did not start"
    executor.close()
    assert not fake.clusters(), "such a machine is not reused"


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("free_kib", [300, 400, 600])
def test_a_job_that_fills_the_disk_of_the_node(study: Callable[..., StudyRuns], free_kib: int) -> None:
    made = study()
    made.job = replace(made.job, run='echo loss: 3; head -c 9000000 /dev/zero > "$HOME/data"')
    outcome = run_with_free_space(made, free_kib)[1]
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert "a disk of " in outcome.detail
    assert "No space left on device" in outcome.detail


@pytest.mark.usefixtures("small_disk")
def test_results_that_do_not_fit_on_the_disk_of_the_node(study: Callable[..., StudyRuns]) -> None:
    """Random output cannot be compressed, and the disk holds it only once: there is no room for it in the log."""
    made = study()
    made.job = replace(made.job, run="head -c 1000000 /dev/urandom")
    outcome = run_with_free_space(made, 1400)[1]
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert "the disk of the node is full" in outcome.detail
