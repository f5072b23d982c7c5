"""The conformance suite over the executor that needs nothing but this machine."""

from pathlib import Path

import pytest

from lynceus.executor.command import LocalJob
from lynceus.executor.local import LocalExecutor
from lynceus.problem import Problem
from lynceus.testing import Ground, executor_checks


def make(problem: Problem, job: LocalJob, root: Path) -> LocalExecutor:
    return LocalExecutor(problem, job, root)


@pytest.mark.parametrize("name", executor_checks())
def test_local_runs_keep_every_promise(name: str, tmp_path: Path) -> None:
    executor_checks()[name](Ground(make, tmp_path))
