"""The supervisor as a single file, with every Python of this machine."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lynceus.executors.command import JobCommand, environment
from lynceus.executors.interface import Request
from lynceus.executors.run_directory import prepare
from lynceus.executors.supervisor import bundle, commands, files, process_tree
from lynceus.executors.supervisor.ending import supervisors_of


def pythons() -> list[str]:
    """One interpreter of every version since 3.8."""
    found = {sys.version_info.minor: sys.executable}
    folders = [*Path.home().glob(".pyenv/versions/*/bin"), Path("/usr/bin"), Path("/usr/local/bin")]
    for folder in folders:
        for minor in range(8, 15):
            if (path := folder / f"python3.{minor}").exists():
                found.setdefault(minor, str(path))
    return [found[minor] for minor in sorted(found)]


class Node:
    """A run directory that was copied to a node, and the file that runs it."""

    def __init__(self, folder: Path, run: str, python: str = sys.executable, timeout_s: float = 60.0) -> None:
        here = folder / "here" / "7"
        job = JobCommand(run, workdir=folder, env={"ODD": "$HOME ${word}"}, secrets={"TOKEN": "hunter2-x"}, grace_s=0.2)
        record = prepare(here, Request("study", 7, 0, {"word": "a b"}, timeout_s, True, "id"), job)
        self.directory = folder / "there" / "seven"
        shutil.copytree(here, self.directory)
        self.python, self.runner = python, str(bundle.write_runner(folder / "tools"))
        self.given = {"environment": environment(job, record, {}), "secrets": ["hunter2-x"]}

    def start(self) -> "subprocess.Popen[bytes]":
        file = self.directory / "environment.json"
        file.write_text(json.dumps(self.given))
        return subprocess.Popen(self.command("run", str(file)), stderr=subprocess.DEVNULL, cwd="/")

    def command(self, what: str, *words: str) -> list[str]:
        return [self.python, "-I", "-S", self.runner, what, str(self.directory), *words]

    def call(self, what: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(what, *words), capture_output=True, text=True, cwd="/", check=False)

    def answer(self, what: str) -> dict[str, Any]:
        done = self.call(what)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
        return found

    def outcome(self) -> dict[str, Any]:
        found = files.read_json(str(self.directory / files.OUTCOME))
        assert found is not None
        return found


@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).name)
def test_every_python_from_3_8_on_runs_it(tmp_path: Path, python: str) -> None:
    script = 'printf %s "$ODD|$LYNCEUS_PARAM_WORD|$word" > seen; echo "$TOKEN"; echo \'::lynceus {"loss": 2}\'; (setsid sleep 1000 &)'
    node = Node(tmp_path, script, python)
    assert node.start().wait() == 0
    record = node.outcome()
    assert (record["end"], record["metrics"]) == ("finished", {"loss": 2.0})
    assert (tmp_path / "seen").read_text() == "$HOME a b|a b|a b"
    assert (node.directory / "stdout").read_text().startswith("***\n")
    assert not (node.directory / "environment.json").exists()
    assert node.answer("state")["state"] == "ended"


@pytest.mark.parametrize("python", [pythons()[0], pythons()[-1]], ids=lambda path: Path(path).name)
def test_every_python_enforces_the_timeout(tmp_path: Path, python: str) -> None:
    node = Node(tmp_path, "trap '' TERM; (setsid sleep 1000 &) ; echo $$ > pid; sleep 1000", python, timeout_s=1.0)
    assert node.start().wait() == 0
    assert node.outcome()["end"] == "capped"
    assert 1.0 <= node.outcome()["seconds"] < 10.0
    assert not is_alive(tmp_path)


def test_equal_sources_give_equal_bytes() -> None:
    first = bundle.runner()
    bundle.runner.cache_clear()
    assert bundle.runner() == first
    assert bundle.runner_name().startswith("runner-")


def test_it_is_small() -> None:
    """SkyPilot copies it to the node of every run, Ray sends it with every request, and a nearly full disk must hold it.

    It has 70 kB now, without compression 180 kB. Code that no node needs belongs into another package.
    """
    assert len(bundle.runner()) < 90_000


def test_it_has_no_module_that_nodes_do_not_use() -> None:
    with zipfile.ZipFile(io.BytesIO(bundle.runner())) as archive:
        names = {Path(name).name for name in archive.namelist()}
    assert {"commands.py", "supervise.py", "readiness.py"} < names
    assert not names & {"bundle.py", "fork_server.py"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=False).returncode:
        pytest.skip("a small disk needs permission to mount it")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, free_bytes: int) -> None:
    """Leave so many bytes of a disk free, in whole pages."""
    found = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * (found.f_bavail * found.f_frsize - free_bytes))


def test_a_runner_that_does_not_fit_leaves_nothing(small_disk: Path) -> None:
    fill(small_disk, 40_960)
    with pytest.raises(OSError, match="No space left on device"):
        bundle.write_runner(small_disk / "tools")
    assert list((small_disk / "tools").iterdir()) == []


@pytest.mark.parametrize("free_kib", [0, 4, 64, 124, 128, 132, 136, 140, 144, 160])
def test_a_nearly_full_disk(tmp_path: Path, small_disk: Path, free_kib: int) -> None:
    """The run ends, and its exit code or its outcome says why, also if standard error is a file on this disk."""
    node = Node(tmp_path, "touch ran")
    node.directory = Path(shutil.copytree(node.directory, small_disk / "run"))
    before = set(node.directory.iterdir())
    (tmp_path / "environment").write_text(json.dumps(node.given))
    with open(small_disk / "errors", "wb") as errors:
        fill(small_disk, free_kib * 1024)
        command = node.command("run", str(tmp_path / "environment"))
        code = subprocess.run(command, stderr=errors, cwd="/", check=False, timeout=60).returncode
    if code == commands.EXIT_DISK_FULL:
        assert set(node.directory.iterdir()) == before, "it frees what it could not use"
        assert not (tmp_path / "ran").exists()
        return
    assert code == 0
    assert free_kib >= 128, "without room for its outcome a run is not started"
    record = node.outcome()
    if record["end"] == "finished":
        assert (tmp_path / "ran").exists()
    else:
        assert not (tmp_path / "ran").exists()
        assert (record["reason"], record["free"]) == ("infra", True)
        assert record["detail"] == f"the disk of the run directory {node.directory} is full"


def test_a_dead_supervisor_is_settled_on_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    node = Node(tmp_path, f"touch {tmp_path}/ready; exec sleep 1000")
    node.directory = Path(shutil.copytree(node.directory, small_disk / "run"))
    run = node.start()
    wait_for(tmp_path / "ready")
    fill(small_disk, 0)
    assert process_tree.kill_all(lambda: supervisors_of(str(node.directory))), "the guard and the supervisor"
    run.wait(timeout=60)
    seen = node.answer("state")
    assert (seen["state"], seen["outcome"]["reason"]) == ("ended", "infra")


def is_alive(folder: Path) -> bool:
    """Whether the process runs whose id is in the file `pid`; a zombie does not."""
    try:
        stat = Path("/proc", (folder / "pid").read_text().strip(), "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_signal_stops_the_job_and_is_recorded(tmp_path: Path) -> None:
    node = Node(tmp_path, "touch ready; exec sleep 1000")
    run = node.start()
    wait_for(tmp_path / "ready")
    assert node.answer("state")["state"] == "running"
    run.send_signal(signal.SIGTERM)
    assert run.wait() == 0
    record = node.outcome()
    assert (record["end"], record["reason"], record["outside"]) == ("failed", "infra", True)
    assert record["detail"].startswith("stopped from outside by SIGTERM after ")


def test_state_settles_a_run_whose_supervisor_was_killed(tmp_path: Path) -> None:
    node = Node(tmp_path, "echo $$ > pid; (setsid sleep 1000 &); touch ready; exec sleep 1000")
    assert node.answer("state")["state"] == "prepared"
    run = node.start()
    wait_for(tmp_path / "ready")
    run.kill()
    run.wait()
    seen = node.answer("state")
    assert (seen["state"], seen["outcome"]["reason"]) == ("ended", "infra")
    assert not is_alive(tmp_path)


def test_cancel_and_end(tmp_path: Path) -> None:
    for number, what in enumerate(("cancel", "end")):
        folder = tmp_path / str(number)
        node = Node(folder, "touch ready; exec sleep 1000")
        run = node.start()
        wait_for(folder / "ready")
        node.answer(what)
        run.wait()
        assert node.answer("state")["outcome"]["reason"] == ("user" if what == "cancel" else "infra")


def test_the_environment_can_come_from_standard_input(tmp_path: Path) -> None:
    node = Node(tmp_path, 'test "$TOKEN" = hunter2-x')
    subprocess.run(node.command("run", "-"), input=json.dumps(node.given), text=True, check=True)
    assert node.outcome()["end"] == "finished"


def test_a_missing_directory(tmp_path: Path) -> None:
    node = Node(tmp_path, "true")
    shutil.rmtree(node.directory)
    run = node.call("run")
    assert (run.returncode, run.stderr) == (
        73,
        f"{os.uname().nodename} cannot see the run directory {node.directory}\n",
    )
    assert node.answer("state") == {"state": "gone", "outcome": None, "seconds": 0.0}


def test_a_missing_environment_is_a_failure(tmp_path: Path) -> None:
    """A supervisor that died after it read its environment, but before it started the job, cannot be started again."""
    node = Node(tmp_path, "true")
    assert node.call("run", str(node.directory / "environment.json")).returncode == 0
    assert node.outcome()["detail"].startswith("its environment could not be read: ")
