"""Fixtures for all tests. Shared helpers (`jobs.py`, `strategies.py` …) are modules in this folder; tests import them by name."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["fake_skypilot"]
"""A fake SkyPilot package. Only the SkyPilot bridge loads it, in its own process."""

if TYPE_CHECKING:
    from postgres import Server
    from slurm_bench import SlurmBench
    from workers import Workers

# Examples are repeatable and have no deadline, because the test machine may be busy.
settings.register_profile(
    "lynceus", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("lynceus")


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Server]":
    """A real PostgreSQL server, started on first use."""
    from postgres import server

    with server() as running:
        yield running


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SlurmBench]":
    """A real Slurm cluster of four nodes, started on first use."""
    from slurm_bench import missing, slurm

    if reason := missing():
        pytest.skip(reason)
    with slurm(tmp_path_factory.mktemp("slurm")) as bench:
        yield bench


@pytest.fixture
def slurm(slurm_cluster: "SlurmBench", monkeypatch: pytest.MonkeyPatch) -> "SlurmBench":
    """The Slurm cluster, idle and configured for the commands of this process."""
    monkeypatch.setenv("SLURM_CONF", slurm_cluster.environment["SLURM_CONF"])
    slurm_cluster.wait_until_idle()
    return slurm_cluster


@pytest.fixture
def workers(tmp_path: Path) -> "Iterator[Workers]":
    """Worker processes that can be killed, see `crash_worker.py`."""
    from workers import Workers

    running = Workers(tmp_path / "workers.log")
    yield running
    running.close()
