"""The conformance suite on a real Ray cluster of three nodes."""

from pathlib import Path

import pytest

from lynceus.executor.command import LocalJob
from lynceus.executor.on_ray.executor import RayExecutor
from lynceus.executor.on_ray.line import Line
from lynceus.executor.on_ray.options import RayOptions
from lynceus.problem import Problem
from lynceus.testing import Ground, executor_checks
from ray_bench import Bench


@pytest.mark.parametrize("name", executor_checks())
def test_runs_on_ray_keep_every_promise(name: str, tmp_path: Path, cluster: Bench, line: Line) -> None:
    def make(problem: Problem, job: LocalJob, root: Path) -> RayExecutor:
        return RayExecutor(problem, job, root, RayOptions(address=cluster.address), line=line)

    executor_checks()[name](Ground(make, tmp_path, patience_s=90.0))
