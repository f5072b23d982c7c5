"""A real SkyPilot over a loopback sshd and a real Slurm, for the tests that are marked slow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skypilot_bench import Bench, missing, skypilot_bench


@pytest.fixture(scope="session")
def sky_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Started on first use, taken down at the end."""
    if reason := missing():
        pytest.skip(reason)
    with skypilot_bench(tmp_path_factory.mktemp("sky")) as bench:
        yield bench


@pytest.fixture
def sky(sky_session: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench, as this process sees it."""
    for name in ("HOME", "SKYPILOT_API_SERVER_LOCAL_PORT", "SKYPILOT_DISABLE_USAGE_COLLECTION"):
        monkeypatch.setenv(name, sky_session.environment[name])
    return sky_session


@pytest.fixture(scope="module")
def sky_ledger(sky_session: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One teardown ledger for all conformance checks, so that they can use each other's warm clusters; none outlives them."""
    ledger = tmp_path_factory.mktemp("ledger")
    yield ledger
    if warm := [path.stem for path in ledger.glob("lyn-*.json")]:
        sky_session.sky("down", "--yes", *warm)
