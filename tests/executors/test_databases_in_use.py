"""A storage within the working directory survives when the directory is copied to other machines."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lynceus.executors.ray import working_directory
from lynceus.executors.skypilot import payload
from lynceus.storage.sql.storage import Storage

_OPEN_STORAGE = """
import sys
from lynceus.storage.sql.storage import Storage
with Storage(sys.argv[1]) as storage:
    storage.studies()
"""


def ray(folder: Path, target: Path) -> None:
    working_directory.pack(folder)


def skypilot(folder: Path, target: Path) -> None:
    payload._link_tree(folder, target, target)


@pytest.mark.parametrize("pack", [ray, skypilot])
def test_other_processes_do_not_take_an_open_storage_for_unused(
    pack: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """The process that closes SQLite's last connection deletes its log. If packing dropped our locks, another process would do so."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "data.csv").write_text("a\n1\n")
    url = f"sqlite:///{folder}/ours.db"
    with Storage(url) as storage:
        storage.studies()
        before = {path.name: path.stat().st_ino for path in folder.iterdir()}
        assert set(before) == {"data.csv", "ours.db", "ours.db-shm", "ours.db-wal"}
        pack(folder, tmp_path / "sent")
        subprocess.run([sys.executable, "-c", _OPEN_STORAGE, url], check=True)
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


def test_only_other_files_are_copied(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "notes-wal").write_text("only the name looks like a log of SQLite")
    with Storage(f"sqlite:///{folder}/ours.db") as storage:
        storage.studies()
        skypilot(folder, tmp_path / "sent")
    assert [path.name for path in (tmp_path / "sent").iterdir()] == ["notes-wal"]
