from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from lynceus.ledger import Ledger, MemoryLedger
from lynceus.ledger.sql import Storage


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
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Ledger]]:
    """Gives ledgers of one study: a new one each time where a database is behind it, otherwise always the same."""
    if request.param == "memory":
        only = MemoryLedger()
        yield lambda: only
        return
    address = f"sqlite:///{tmp_path}/studies.db"
    if request.param == "postgresql":
        address = request.getfixturevalue("postgres").database(f"test-{uuid4().hex}")
    with Storage(address) as opened:
        new_study(opened)
        yield lambda: opened.ledger("nightly")
