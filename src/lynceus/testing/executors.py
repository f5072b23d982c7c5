"""What every executor promises, checked with real runs: see docs/executors.md. Silent when it is kept, an AssertionError when not.

from lynceus.testing import executor_checks, Ground

@pytest.mark.parametrize("check", executor_checks().values(), ids=executor_checks())
def test_mine(check, tmp_path):
    check(Ground(lambda problem, job, root: MyExecutor(problem, job, root), tmp_path))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from lynceus.testing.executor_ground import Elsewhere, Ground, Make, forked
from lynceus.testing.executor_runs import RUNS
from lynceus.testing.executor_survival import SURVIVAL

Check = Callable[[Ground], None]


def executor_checks() -> Mapping[str, Check]:
    """Every promise by its name; each check needs a ground with a folder of its own.

    >>> "the cap is kept" in executor_checks()
    True
    """
    return {**RUNS, **SURVIVAL}


def check_executor(
    make: Make, folder: Path, *, patience_s: float = 60.0, here: bool = True, elsewhere: Elsewhere = forked
) -> None:
    """Run every check, one after the other (AssertionError if a promise is broken).

    `make(problem, job, root)` gives an executor; it is called again and again, and a new one must find the runs of the one before.
    `folder` is empty and seen by the jobs too. `here`: jobs are processes of this machine, so that it can be seen whether they live.
    `elsewhere` calls a function in a new process.
    """
    for place, (name, check) in enumerate(executor_checks().items()):
        below = folder / str(place)
        below.mkdir(parents=True)
        try:
            check(Ground(make, below, patience_s, here, elsewhere))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
