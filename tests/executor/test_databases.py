"""A storage within the working directory survives that the directory is packed for other machines."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lynceus.executor.on_ray import shipping
from lynceus.executor.skypilot import payload
from lynceus.ledger.sql import Storage

_ANOTHER = """
import sys
from lynceus.ledger.sql import Storage
with Storage(sys.argv[1]) as storage:
    storage.studies()
"""


def ray(folder: Path, target: Path) -> None:
    shipping.pack(folder)


def skypilot(folder: Path, target: Path) -> None:
    payload._link_tree(folder, target, target)


@pytest.mark.parametrize("pack", [ray, skypilot])
def test_another_process_does_not_take_an_open_storage_for_abandoned(
    pack: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """Whoever closes SQLite's last connection deletes its log: locks lost here would let another one do so under our feet."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "data.csv").write_text("a\n1\n")
    url = f"sqlite:///{folder}/ours.db"
    with Storage(url) as storage:
        storage.studies()
        before = {path.name: path.stat().st_ino for path in folder.iterdir()}
        assert set(before) == {"data.csv", "ours.db", "ours.db-shm", "ours.db-wal"}
        pack(folder, tmp_path / "sent")
        subprocess.run([sys.executable, "-c", _ANOTHER, url], check=True)
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


def test_only_other_files_are_sent(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "notes-wal").write_text("a name that only looks like it")
    with Storage(f"sqlite:///{folder}/ours.db") as storage:
        storage.studies()
        skypilot(folder, tmp_path / "sent")
    assert [path.name for path in (tmp_path / "sent").iterdir()] == ["notes-wal"]
