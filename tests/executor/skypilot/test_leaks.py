"""Lynceus is killed at random moments of studies on SkyPilot's clusters; no cluster, no process and no unpaid second is left."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leaks import LeakCampaign
from small_sky_bench import SmallSky

if TYPE_CHECKING:
    from workers import Workers


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallSky:
    """Asked for before the workers, who inherit the way to it."""
    bench = SmallSky(tmp_path / "small")
    monkeypatch.setenv("SMALL_SKY", str(bench.folder))
    return bench


def _campaign(tmp_path: Path, workers: "Workers", small: SmallSky, seed: int) -> LeakCampaign:
    executor = {
        "kind": "skypilot",
        "python": str(small.python),
        "resources": {"infra": "cloud/region"},
        "workdir": False,
        "keep_warm": "10m",
    }
    return LeakCampaign(tmp_path, workers, executor, seed=seed, longest_s=6.0)


def test_a_few_crashes_leave_no_cluster(small: SmallSky, tmp_path: Path, workers: "Workers") -> None:
    _campaign(tmp_path, workers, small, seed=1).run(4)
    assert small.clusters() == []


@pytest.mark.slow
def test_a_hundred_crashes_leave_no_cluster(small: SmallSky, tmp_path: Path, workers: "Workers") -> None:
    campaign = _campaign(tmp_path, workers, small, seed=2)
    campaign.run(100)
    assert small.clusters() == []
    print(dict(campaign.happened), f"{campaign.charged_s:.1f} s charged and accounted for")
