"""A run is started once, whatever the moment at which its first supervisor died or however many there are."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lynceus.supervisor import files

SUPERVISE = "import sys; from lynceus.supervisor.supervise import supervise; supervise(sys.argv[1], {'PATH': '/bin:/usr/bin'}, [])"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    request: dict[str, Any] = {
        "run": "a1b2",
        "number": 0,
        "argv": ["sh", "-c", "echo ran >> deeds; sleep 0.3"],
        "cwd": str(tmp_path),
        "cap_s": 60.0,
        "grace_s": 1.0,
        "output_bytes": 1000,
    }
    files.write_whole(str(tmp_path / files.REQUEST), request)
    return tmp_path


def supervisor(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SUPERVISE, str(directory)])


def deeds(directory: Path) -> int:
    path = directory / "deeds"
    return len(path.read_text().split()) if path.exists() else 0


def test_of_many_supervisors_one_runs_the_job(directory: Path) -> None:
    together = [supervisor(directory) for _ in range(4)]
    assert [one.wait() for one in together] == [0] * 4
    assert deeds(directory) == 1
    assert json.loads((directory / files.OUTCOME).read_text())["end"] == "finished"
    assert supervisor(directory).wait() == 0
    assert deeds(directory) == 1


def test_what_was_started_once_is_not_started_again(directory: Path) -> None:
    files.write_whole(str(directory / files.STARTED), {"v": 1, "pid": 1, "began_s": 0.0, "groups": []})
    assert supervisor(directory).wait() == 0
    assert deeds(directory) == 0
    assert not (directory / files.OUTCOME).exists()


def test_without_a_request_nothing_happens(directory: Path) -> None:
    (directory / files.REQUEST).unlink()
    assert supervisor(directory).wait() == 0
    assert deeds(directory) == 0


def test_a_directory_that_was_removed_is_not_waited_for(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An outcome that cannot be written is tried again, for the disk may be full; here nobody will ever read it."""
    gone = tmp_path_factory.mktemp("gone")
    request = json.loads((directory / files.REQUEST).read_text())
    request |= {"argv": ["sh", "-c", f"rm -rf '{gone}'"]}
    files.write_whole(str(gone / files.REQUEST), request)
    assert supervisor(gone).wait(60) == 0
    assert not gone.exists()
