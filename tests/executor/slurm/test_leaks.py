"""Lynceus is killed at random moments of studies on Slurm; no job and no process of it is left, and every second is accounted for."""

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


def test_a_few_crashes_leave_nothing(slurm: SlurmBench, workers: "Workers", tmp_path: Path) -> None:
    LeakCampaign(tmp_path, workers, EXECUTOR, seed=1, longest_s=2.5).run(8)
    eventually(lambda: slurm.jobs() == [])  # the cluster takes a moment to forget what has ended


@pytest.mark.slow
def test_a_hundred_and_twenty_crashes_leave_nothing(slurm: SlurmBench, workers: "Workers", tmp_path: Path) -> None:
    campaign = LeakCampaign(tmp_path, workers, EXECUTOR, seed=2, longest_s=4.0)
    campaign.run(120)
    eventually(lambda: slurm.jobs() == [])  # the cluster takes a moment to forget what has ended
    print(dict(campaign.happened), f"{campaign.charged_s:.1f} s charged and accounted for")
