"""The conformance suite with the local executor."""

from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.local import LocalExecutor
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import executor_checks


def make(problem: Problem, job: JobCommand, root: Path) -> LocalExecutor:
    return LocalExecutor(problem, job, root)


@pytest.mark.parametrize("name", executor_checks())
def test_the_local_executor_conforms(name: str, tmp_path: Path) -> None:
    executor_checks()[name](ExecutorHarness(make, tmp_path))
