"""The supervisor as a single file, with every Python of this machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lynceus.executors.command import JobCommand, environment
from lynceus.executors.interface import Request
from lynceus.executors.run_directory import prepare
from lynceus.executors.supervisor import bundle, files


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
