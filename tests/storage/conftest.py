from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from lynceus.storage.journal import Journal
from lynceus.storage.memory import MemoryJournal
from lynceus.storage.sql.storage import Storage


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/studies.db"
    address: str = request.getfixturevalue("postgres").database(f"test-{uuid4().hex}")
    return address


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    with Storage(url) as opened:
        yield opened


def new_study(storage: Storage, name: str = "nightly") -> None:
    storage.create_study(name, document={"name": name}, fingerprint="f" * 64, policy={"name": "sweep"}, seed=7)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def journals(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Journal]]:
    """A function that opens a journal of one study. The database opens a new journal each time; memory returns the same one."""
    if request.param == "memory":
        shared = MemoryJournal()
        yield lambda: shared
        return
    address = f"sqlite:///{tmp_path}/studies.db"
    if request.param == "postgresql":
        address = request.getfixturevalue("postgres").database(f"test-{uuid4().hex}")
    with Storage(address) as opened:
        new_study(opened)
        yield lambda: opened.journal("nightly")
