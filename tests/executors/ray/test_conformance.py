"""The conformance suite with a real Ray cluster of three nodes."""

from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.ray.client import DriverClient
from lynceus.executors.ray.executor import RayExecutor
from lynceus.executors.ray.options import RayOptions
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import executor_checks
from lynceus.testing.serving import serving_checks
from ray_bench import Bench


@pytest.mark.parametrize("name", executor_checks())
def test_the_ray_executor_conforms(name: str, tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> RayExecutor:
        return RayExecutor(problem, job, root, RayOptions(address=cluster.address), client=client)

    executor_checks()[name](ExecutorHarness(make, tmp_path, patience_s=90.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", serving_checks())
def test_servers_on_ray(name: str, tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> RayExecutor:
        return RayExecutor(problem, job, root, RayOptions(address=cluster.address), client=client)

    serving_checks()[name](ExecutorHarness(make, tmp_path, patience_s=90.0))
