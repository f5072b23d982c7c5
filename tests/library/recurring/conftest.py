from collections.abc import Iterator
from pathlib import Path

import pytest

from lynceus.storage.sql.storage import Storage


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What this host keeps of jobs is kept apart from that of other tests."""
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lynceus.db"


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    with Storage(url) as opened:
        yield opened
