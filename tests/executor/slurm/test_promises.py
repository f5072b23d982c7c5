"""The conformance suite over a real Slurm."""

import sys
from pathlib import Path

import pytest

from lynceus.executor.command import LocalJob
from lynceus.executor.slurm import SlurmExecutor, SlurmOptions
from lynceus.executor.slurm.executor import slurm_executor
from lynceus.problem import Problem
from lynceus.testing import Ground, executor_checks
from slurm_bench import SlurmBench

OPTIONS = SlurmOptions.model_validate({"python": sys.executable, "poll": 0.2})


def make(problem: Problem, job: LocalJob, root: Path) -> SlurmExecutor:
    return slurm_executor(problem, job, root, OPTIONS)


@pytest.mark.parametrize("name", executor_checks())
def test_slurm_jobs_keep_every_promise(slurm: SlurmBench, name: str, tmp_path: Path) -> None:
    executor_checks()[name](Ground(make, tmp_path))
