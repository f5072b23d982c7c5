"""The conformance suite with a real Slurm cluster."""

import sys
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import executor_checks
from lynceus.testing.serving import serving_checks
from slurm_bench import SlurmBench

OPTIONS = SlurmOptions.model_validate({"python": sys.executable, "poll": 0.2})


def make(problem: Problem, job: JobCommand, root: Path) -> SlurmExecutor:
    return SlurmExecutor(ExecutorContext(problem, job, root), OPTIONS)


@pytest.mark.parametrize("name", executor_checks())
def test_the_slurm_executor_conforms(slurm: SlurmBench, name: str, tmp_path: Path) -> None:
    executor_checks()[name](ExecutorHarness(make, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", serving_checks())
def test_servers_on_slurm(slurm: SlurmBench, name: str, tmp_path: Path) -> None:
    serving_checks()[name](ExecutorHarness(make, tmp_path))
