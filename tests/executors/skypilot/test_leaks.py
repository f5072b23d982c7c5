"""Lynceus is killed at random moments of studies on SkyPilot: no cluster or process is left, and all charges are correct."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_skypilot_bench import FakeSkyPilot
from leaks import LeakCampaign

if TYPE_CHECKING:
    from workers import Workers


def _campaign(tmp_path: Path, workers: "Workers", fake: FakeSkyPilot, seed: int) -> LeakCampaign:
    executor = {
        "kind": "skypilot",
        "python": str(fake.python),
        "resources": {"infra": "cloud/region"},
        "workdir": False,
        "keep_warm": "10m",
    }
    return LeakCampaign(tmp_path, workers, executor, seed=seed, max_delay_s=6.0)


def test_a_few_crashes_leave_no_cluster(fake: FakeSkyPilot, tmp_path: Path, workers: "Workers") -> None:
    _campaign(tmp_path, workers, fake, seed=1).run(4)
    assert fake.clusters() == []


@pytest.mark.slow
def test_100_crashes_leave_no_cluster(fake: FakeSkyPilot, tmp_path: Path, workers: "Workers") -> None:
    campaign = _campaign(tmp_path, workers, fake, seed=2)
    campaign.run(100)
    assert fake.clusters() == []
    print(dict(campaign.happened), f"{campaign.charged_s:.1f} s charged")
