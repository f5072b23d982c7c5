"""The conformance suite of executors: checks with real runs, see docs/executors.md. A failed check raises an AssertionError.

from lynceus.testing import ExecutorHarness, executor_checks

@pytest.mark.parametrize("check", executor_checks().values(), ids=executor_checks())
def test_my_executor(check, tmp_path):
    check(ExecutorHarness(lambda problem, job, root: MyExecutor(problem, job, root), tmp_path))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from lynceus.testing.executor_harness import CallInProcess, ExecutorHarness, MakeExecutor, call_in_fork
from lynceus.testing.executor_runs import RUN_CHECKS
from lynceus.testing.executor_survival import SURVIVAL_CHECKS

Check = Callable[[ExecutorHarness], None]


def executor_checks() -> Mapping[str, Check]:
    """All checks by name; each needs a harness with its own folder.

    >>> "the timeout is enforced" in executor_checks()
    True
    """
    return {**RUN_CHECKS, **SURVIVAL_CHECKS}


def check_executor(
    make: MakeExecutor,
    folder: Path,
    *,
    patience_s: float = 60.0,
    jobs_are_local: bool = True,
    call_in_process: CallInProcess = call_in_fork,
) -> None:
    """Run all checks, one after the other; raises an AssertionError if one fails.

    `make(problem, job, root)` makes an executor. It is called many times, and each executor must find the runs of those before.
    `folder` is empty, and jobs see it under the same path. `jobs_are_local`: jobs are processes of this machine, so that the checks can see
    whether they are alive. `call_in_process` calls a function in a new process.
    """
    for index, (name, check) in enumerate(executor_checks().items()):
        below = folder / str(index)
        below.mkdir(parents=True)
        try:
            check(ExecutorHarness(make, below, patience_s, jobs_are_local, call_in_process))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
