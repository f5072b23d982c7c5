"""A fake SkyPilot, and for tests that are marked slow a real one with a real Slurm cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_skypilot_bench import FakeSkyPilot
from skypilot_bench import Bench, missing, skypilot_bench
from skypilot_runs import StudyRuns


@pytest.fixture(scope="session")
def sky_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Started on first use, stopped at the end."""
    if reason := missing():
        pytest.skip(reason)
    with skypilot_bench(tmp_path_factory.mktemp("sky")) as bench:
        yield bench


@pytest.fixture
def sky(sky_session: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The same SkyPilot, for clients in this process."""
    for name in ("HOME", "SKYPILOT_API_SERVER_LOCAL_PORT", "SKYPILOT_DISABLE_USAGE_COLLECTION"):
        monkeypatch.setenv(name, sky_session.environment[name])
    return sky_session


@pytest.fixture(scope="module")
def sky_clusters(sky_session: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One list of clusters for all conformance checks, so that they can share warm clusters; taken down at the end."""
    folder = tmp_path_factory.mktemp("clusters")
    yield folder
    if warm := [path.stem for path in folder.glob("lyn-*.json")]:
        sky_session.sky("down", "--yes", *warm)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSkyPilot:
    """Must be requested before `workers`, which inherit its environment."""
    bench = FakeSkyPilot(tmp_path / "fake")
    monkeypatch.setenv("FAKE_SKYPILOT", str(bench.folder))
    return bench


@pytest.fixture
def study(fake: FakeSkyPilot, tmp_path: Path) -> Iterator[Callable[..., StudyRuns]]:
    made: list[StudyRuns] = []

    def make(**more: Any) -> StudyRuns:
        made.append(StudyRuns(fake, tmp_path / "study", **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
