"""The conformance suite over a real SkyPilot; half an hour and more, so it is run by `make test-skypilot`."""

from pathlib import Path

import pytest

from lynceus.executor.command import LocalJob
from lynceus.executor.plugin import Setting
from lynceus.executor.skypilot import SkyPilotExecutor, SkyPilotOptions
from lynceus.problem import Problem
from lynceus.testing import Ground, executor_checks
from lynceus.testing.executor_ground import forked
from skypilot_bench import PYTHON, Bench

OPTIONS = SkyPilotOptions.model_validate(
    {
        "python": str(PYTHON),
        "resources": {"infra": "slurm/bench/main", "cpus": 1, "memory": 1},
        "keep_warm": "20m",
        "workdir": False,
    }
)


class Warm(SkyPilotExecutor):
    """Leaves idle clusters to the next check."""

    def close(self) -> None:
        """Only let go of SkyPilot."""
        self.leave()


@pytest.mark.slow
@pytest.mark.parametrize("name", executor_checks())
def test_skypilot_runs_keep_every_promise(sky: Bench, sky_ledger: Path, name: str, tmp_path: Path) -> None:
    def make(problem: Problem, job: LocalJob, root: Path) -> SkyPilotExecutor:
        root.mkdir(parents=True, exist_ok=True)
        if "tariff" in name:
            # Whoever boots nothing is charged no boot, and that promise is about clusters that are started: no warm ones here.
            return SkyPilotExecutor(Setting(problem, job, root), OPTIONS)
        if not (root / "skypilot").exists():
            (root / "skypilot").symlink_to(sky_ledger)
        return Warm(Setting(problem, job, root), OPTIONS)

    executor_checks()[name](Ground(make, tmp_path, 900.0, True, forked, "0123456789ab"))
