"""Lynceus is killed at random moments of studies on Ray: the cluster is clean afterwards."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leaks import LeakCampaign
from ray_bench import Bench

if TYPE_CHECKING:
    from workers import Workers


def _campaign(tmp_path: Path, workers: "Workers", cluster: Bench, seed: int) -> LeakCampaign:
    executor = {
        "kind": "ray",
        "address": cluster.address,
        "workdir": "shared",
        "num_cpus": 1,
        "node_folder": str(tmp_path / "node"),
    }
    return LeakCampaign(tmp_path, workers, executor, seed=seed, max_delay_s=6.0)


def test_a_few_crashes_leave_nothing_running(tmp_path: Path, workers: "Workers", cluster: Bench) -> None:
    _campaign(tmp_path, workers, cluster, seed=1).run(3)


@pytest.mark.slow
def test_100_crashes_leave_nothing_running(tmp_path: Path, workers: "Workers", cluster: Bench) -> None:
    campaign = _campaign(tmp_path, workers, cluster, seed=2)
    campaign.run(100)
    print(dict(campaign.happened), f"{campaign.charged_s:.1f} s charged")
