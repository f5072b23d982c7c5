"""A run is started once, however many supervisors there are and whenever the first one died."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_runs import eventually
from lynceus.executors.supervisor import files

SUPERVISE = "import sys; from lynceus.executors.supervisor.supervise import supervise as s; s(sys.argv[1], {'PATH': '/bin:/usr/bin'}, [])"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    request: dict[str, Any] = {
        "run": "a1b2",
        "number": 0,
        "argv": ["sh", "-c", "echo ran >> log; sleep 0.3"],
        "cwd": str(tmp_path),
        "cap_s": 60.0,
        "grace_s": 1.0,
        "output_bytes": 1000,
    }
    files.write_atomically(str(tmp_path / files.REQUEST), request)
    return tmp_path


def supervisor(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SUPERVISE, str(directory)])


def times_run(directory: Path) -> int:
    path = directory / "log"
    return len(path.read_text().split()) if path.exists() else 0


def test_only_one_of_several_supervisors_runs_the_job(directory: Path) -> None:
    supervisors = [supervisor(directory) for _ in range(4)]
    assert [one.wait() for one in supervisors] == [0] * 4
    assert times_run(directory) == 1
    assert json.loads((directory / files.OUTCOME).read_text())["end"] == "finished"
    assert supervisor(directory).wait() == 0
    assert times_run(directory) == 1


def test_a_run_that_was_started_is_not_started_again(directory: Path) -> None:
    files.write_atomically(str(directory / files.STARTED), {"v": 1, "pid": 1, "began_s": 0.0, "groups": []})
    assert supervisor(directory).wait() == 0
    assert times_run(directory) == 0
    assert not (directory / files.OUTCOME).exists()


def test_without_a_request_no_job_is_started(directory: Path) -> None:
    (directory / files.REQUEST).unlink()
    assert supervisor(directory).wait() == 0
    assert times_run(directory) == 0


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_supervisor_whose_directory_is_gone_ends_the_job(
    directory: Path, tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    """Nobody could see the run any more. Writing the outcome is retried if the disk is full, but not in this case."""
    gone = tmp_path_factory.mktemp("gone") / "run"
    gone.mkdir()
    request = json.loads((directory / files.REQUEST).read_text())
    request |= {"argv": ["sh", "-c", f"echo $$ > '{directory}/pid'; touch '{directory}/ready'; sleep 1000"]}
    files.write_atomically(str(gone / files.REQUEST), request)
    one = supervisor(gone)
    eventually((directory / "ready").exists)
    if how == "removed":
        shutil.rmtree(gone)
    else:
        gone.rename(gone.parent / "elsewhere")
    if how == "replaced":
        gone.mkdir()
        (gone / files.LOCK).touch()
    assert one.wait(60) == 0
    assert not Path("/proc", (directory / "pid").read_text().strip()).exists()
    assert not (gone / files.OUTCOME).exists()
