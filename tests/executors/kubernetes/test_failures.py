"""What Kubernetes does to trials, and what Lynceus makes of it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes_bench import FakeKubernetes, fake_kubernetes
from lynceus.errors import InputError
from lynceus.executors.kubernetes.client import KubernetesClient
from lynceus.executors.kubernetes.executor import KubernetesExecutor
from lynceus.executors.kubernetes.options import KubernetesOptions, requested
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor import files
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason

WAITS = 'touch "$FOLDER/ready"; sleep 1000'


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubernetes]:
    with fake_kubernetes(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


def harness(folder: Path, **more: Any) -> ExecutorHarness:
    given = {
        "image": "job:1",
        "volumes": [{"path": str(folder), "claim": "runs"}],
        "python": sys.executable,
        "poll": 0.1,
    }
    options = KubernetesOptions.model_validate(given | more)
    return ExecutorHarness(
        lambda problem, job, root: KubernetesExecutor(ExecutorContext(problem, job, root), options), folder, 30.0
    )


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (lambda cluster, name: cluster.evict(name), FailureReason.PREEMPTED),
        (lambda cluster, name: cluster.kill_for_memory(name), FailureReason.OOM),
        (lambda cluster, name: cluster.delete(name), FailureReason.USER),
    ],
    ids=["evicted", "out of memory", "deleted"],
)
def test_a_run_that_kubernetes_ends_has_its_reason(
    cluster: FakeKubernetes, tmp_path: Path, happens: Callable[[FakeKubernetes, str], None], reason: FailureReason
) -> None:
    one = harness(tmp_path)
    with one.executor(one.job(WAITS)) as executor:
        ticket = executor.launch(one.request())
        one.wait_for_file(executor, ticket, "ready")
        (name,) = cluster.jobs
        happens(cluster, name)
        outcome = one.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, reason), outcome
    assert "Kubernetes" in outcome.detail


def test_a_queue_admits_the_job_and_waiting_is_not_charged(cluster: FakeKubernetes, tmp_path: Path) -> None:
    cluster.suspend = True
    one = harness(tmp_path, queue="trials")
    with one.executor(one.job("echo '::lynceus {\"loss\": 1}'")) as executor:
        ticket = executor.launch(one.request())
        for _ in range(5):
            assert executor.collect(ticket) is None
        (job,) = cluster.created
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "trials"
        cluster.admit()
        outcome = one.wait(executor, ticket)
    assert outcome.end is End.FINISHED
    assert outcome.charged_usd == pytest.approx(outcome.seconds)


def test_a_suspended_job_can_be_cancelled_and_waits_no_longer_than_allowed(
    cluster: FakeKubernetes, tmp_path: Path
) -> None:
    cluster.suspend = True
    one = harness(tmp_path, max_queue=0.5)
    with one.executor(one.job("true")) as executor:
        outcome = one.wait(executor, executor.launch(one.request(0)))
        assert (outcome.reason, outcome.charged_usd) == (FailureReason.INFRA, 0.0)
        assert "no capacity: its pod waited" in outcome.detail
        ticket = executor.launch(one.request(1))
        executor.cancel(ticket)
        outcome = one.wait(executor, ticket)
        assert (outcome.reason, outcome.charged_usd) == (FailureReason.USER, 0.0)
    assert not cluster.jobs


def test_an_image_that_can_never_start_blames_the_configuration(cluster: FakeKubernetes, tmp_path: Path) -> None:
    cluster.hold = "InvalidImageName"
    one = harness(tmp_path)
    _, outcome = one.run(one.job("true"))
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.JOB, 0.0)
    assert "InvalidImageName" in outcome.detail


def test_a_quota_is_waited_for(cluster: FakeKubernetes, tmp_path: Path) -> None:
    cluster.quota = "exceeded quota: team"
    one = harness(tmp_path)
    with one.executor(one.job("echo '::lynceus {\"loss\": 1}'")) as executor:
        ticket = executor.launch(one.request())
        assert executor.collect(ticket) is None
        cluster.quota = ""
        assert one.wait(executor, ticket).end is End.FINISHED


def test_a_pod_that_does_not_see_its_directory_says_so(cluster: FakeKubernetes, tmp_path: Path) -> None:
    one = harness(tmp_path)
    with one.executor(one.job("true")) as executor:
        cluster.suspend = True
        ticket = executor.launch(one.request())
        (job,) = cluster.jobs.values()
        container = job["spec"]["template"]["spec"]["containers"][0]
        container["command"][2] = container["command"][2].replace(ticket, "/nowhere")
        cluster.admit()
        assert "cannot see the run directory" in one.wait(executor, ticket).detail


def test_the_job_says_what_the_configuration_asks_for(cluster: FakeKubernetes, tmp_path: Path) -> None:
    one = harness(
        tmp_path,
        image="registry/job:${word}",
        cpus=2,
        memory="1.5 GB",
        gpus=1,
        node_selector={"zone": "${word}"},
        tolerations=[{"key": "spot", "operator": "Exists"}],
        service_account="jobs",
        pull_secrets=["registry"],
        priority_class="low",
        labels={"team": "data"},
    )
    with pytest.raises(InputError, match="image: got"):
        one.make(one.problem(), one.job("true"), tmp_path / "runs")  # one of the words cannot be a tag
    options = KubernetesOptions.model_validate(
        {"image": "job:${word}", "volumes": [{"path": "/x", "host_path": "/x"}], "memory": "${m}", "cpus": "0.5"}
    )
    assert requested(options, {"word": "a", "m": None}, Resources(memory_bytes=1 << 30)) == {
        "image": "job:a",
        "cpus": "0.5",
        "memory": "1024Mi",
    }
    plain = harness(tmp_path, cpus=2, memory="1.5 GB", gpus=1, tolerations=[{"key": "spot", "operator": "Exists"}])
    plain.run(plain.job("echo '::lynceus {\"loss\": 1}'"), plain.request(timeout_s=60.0))
    (job,) = cluster.created
    pod = job["spec"]["template"]["spec"]
    amounts = {"cpu": "2", "memory": "1536Mi", "nvidia.com/gpu": "1"}
    assert pod["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}
    assert pod["activeDeadlineSeconds"] == 661
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["ttlSecondsAfterFinished"] == 600
    assert not cluster.refusals


def test_run_directories_must_lie_on_a_volume(tmp_path: Path) -> None:
    one = harness(tmp_path, volumes=[{"path": "/elsewhere", "claim": "x"}])
    with pytest.raises(InputError, match="lie on no volume"):
        one.make(one.problem(), one.job("true"), tmp_path / "runs")


def test_a_job_that_kubernetes_has_removed_was_not_deleted_by_a_user(cluster: FakeKubernetes, tmp_path: Path) -> None:
    """Lynceus was away for longer than `keep` after the run ended: the trial is tried again."""
    one = harness(tmp_path, keep=60.0)
    with one.executor(one.job(WAITS)) as executor:
        ticket = executor.launch(one.request())
        one.wait_for_file(executor, ticket, "ready")
    ((name, pod),) = cluster.pods.items()
    cluster.delete(name)
    assert pod.ended.wait(30.0)
    alive, long_ago = Path(ticket, files.ALIVE), time.time() - 120.0
    os.utime(alive, (long_ago, long_ago))
    with one.executor(one.job(WAITS)) as executor:
        outcome = one.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)


def test_a_damaged_kubeconfig_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("clusters: [a\n b: {")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    options = KubernetesOptions.model_validate({"image": "job:1", "volumes": [{"path": "/runs", "claim": "runs"}]})
    with pytest.raises(InputError, match=r"^executor: the kubeconfig is not valid YAML; [^\n]+\.$"):
        KubernetesClient(options).jobs()
