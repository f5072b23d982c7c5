from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dashboards import JOB, Dashboard, dashboard


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """One server for all tests that do not stop it."""
    folder = tmp_path_factory.mktemp("dashboard")
    with dashboard(f"sqlite:///{folder}/studies.db", folder) as running:
        yield running
    assert not running.broken, "".join(running.stderr)


_numbers = count()


@pytest.fixture
def new_study(server: Dashboard) -> Callable[..., str]:
    """Creates a study and returns its name."""

    def create(**changes: Any) -> str:
        name = changes.pop("name", f"toy-{next(_numbers)}")
        answer = server.post("studies", JOB | {"name": name} | changes)
        assert answer.status == 201, answer.body
        return str(answer.json["name"])

    return create


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
