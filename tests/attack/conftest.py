"""Fixtures of the attack."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from attack.fast_machine import FastMachine, MemoryMachine

if TYPE_CHECKING:
    from postgres import Server


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def fast_machine(request: pytest.FixtureRequest, tmp_path: Path) -> type[FastMachine]:
    """The machine in virtual time on each storage."""
    if request.param == "memory":
        return MemoryMachine
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/s.db"
    else:
        server: Server = request.getfixturevalue("postgres")
        url = server.database(f"attack-{uuid4().hex}")
    return type(f"FastMachine_{request.param}", (FastMachine,), {"url": url})
