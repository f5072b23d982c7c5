"""The conformance suite with a real SkyPilot. It takes more than half an hour; `make test-skypilot` runs it."""

from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.executors.skypilot.options import SkyPilotOptions
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness, call_in_fork
from lynceus.testing.executors import executor_checks
from skypilot_bench import PYTHON, Bench

OPTIONS = SkyPilotOptions.model_validate(
    {
        "python": str(PYTHON),
        "resources": {"infra": "slurm/bench/main", "cpus": 1, "memory": 1},
        "keep_warm": "20m",
        "workdir": False,
    }
)


class KeepsClusters(SkyPilotExecutor):
    """Keeps idle clusters for the next check."""

    def close(self) -> None:
        """Only disconnect from SkyPilot."""
        self.leave()


@pytest.mark.slow
@pytest.mark.parametrize("name", executor_checks())
def test_the_skypilot_executor_conforms(sky: Bench, sky_clusters: Path, name: str, tmp_path: Path) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> SkyPilotExecutor:
        root.mkdir(parents=True, exist_ok=True)
        if name == "a run can be started in its scratch directory":  # with files of the working directory
            return SkyPilotExecutor(ExecutorContext(problem, job, root), OPTIONS.model_copy(update={"workdir": True}))
        if name == "time is charged as the billing says":  # about clusters that are started, so no warm ones here
            return SkyPilotExecutor(ExecutorContext(problem, job, root), OPTIONS)
        if not (root / "skypilot").exists():
            (root / "skypilot").symlink_to(sky_clusters)
        return KeepsClusters(ExecutorContext(problem, job, root), OPTIONS)

    executor_checks()[name](ExecutorHarness(make, tmp_path, 900.0, True, call_in_fork, "0123456789ab"))
