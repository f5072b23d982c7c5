"""The conformance suite with a fake Kubernetes, which checks every object with the official client's models."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubernetes_bench import FakeKubernetes, fake_kubernetes
from lynceus.executors.command import JobCommand
from lynceus.executors.kubernetes.executor import KubernetesExecutor
from lynceus.executors.kubernetes.options import KubernetesOptions
from lynceus.executors.plugin import ExecutorContext
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executor_outages import outage_checks
from lynceus.testing.executors import executor_checks


def options(folder: Path) -> KubernetesOptions:
    return KubernetesOptions.model_validate(
        {
            "image": "registry/job:1",
            "volumes": [{"path": str(folder), "claim": "runs"}],
            "python": sys.executable,
            "poll": 0.1,
            "queue": "trials",
        }
    )


def make(problem: Problem, job: JobCommand, root: Path) -> KubernetesExecutor:
    return KubernetesExecutor(ExecutorContext(problem, job, root), options(root.parent))


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubernetes]:
    with fake_kubernetes(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running
        assert not running.refusals, running.refusals


@pytest.mark.parametrize("name", executor_checks())
def test_the_kubernetes_executor_conforms(cluster: FakeKubernetes, name: str, tmp_path: Path) -> None:
    executor_checks()[name](ExecutorHarness(make, tmp_path, 30.0))


@pytest.mark.parametrize("fault", ["error", "garbage", "refuse", pytest.param("hang", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", outage_checks())
def test_outages_of_the_api_server(cluster: FakeKubernetes, name: str, fault: str, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def broken() -> Iterator[None]:
        cluster.fault = fault
        try:
            yield
        finally:
            cluster.fault = ""

    outage_checks()[name](ExecutorHarness(make, tmp_path, 30.0), broken)
