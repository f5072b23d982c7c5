"""Lynceus is killed at random moments of studies on Slurm: no job or process is left, and all charges are correct."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leaks import LeakCampaign
from local_runs import eventually
from slurm_bench import SlurmBench

if TYPE_CHECKING:
    from workers import Workers

EXECUTOR = {"kind": "slurm", "python": sys.executable, "poll": 0.2, "memory": "100 MB"}


def test_a_few_crashes_leave_nothing_running(slurm: SlurmBench, workers: "Workers", tmp_path: Path) -> None:
    LeakCampaign(tmp_path, workers, EXECUTOR, seed=1, max_delay_s=2.5).run(8)
    eventually(lambda: slurm.jobs() == [])  # Slurm takes a moment to remove ended jobs


@pytest.mark.slow
def test_120_crashes_leave_nothing_running(slurm: SlurmBench, workers: "Workers", tmp_path: Path) -> None:
    campaign = LeakCampaign(tmp_path, workers, EXECUTOR, seed=2, max_delay_s=4.0)
    campaign.run(120)
    eventually(lambda: slurm.jobs() == [])  # Slurm takes a moment to remove ended jobs
    print(dict(campaign.happened), f"{campaign.charged_s:.1f} s charged")
