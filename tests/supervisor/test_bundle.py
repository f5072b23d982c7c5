"""The supervisor as one file, on every Python that this machine has."""

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

from lynceus.executor.command import LocalJob, environment
from lynceus.executor.directory import prepare
from lynceus.executor.executor import Request
from lynceus.supervisor import bundle, files


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
    """A run directory that was carried elsewhere, and the one file that runs it."""

    def __init__(self, folder: Path, run: str, python: str = sys.executable, cap_s: float = 60.0) -> None:
        here = folder / "here" / "7"
        job = LocalJob(run, workdir=folder, env={"ODD": "$HOME ${word}"}, secrets={"TOKEN": "hunter2-x"}, grace_s=0.2)
        record = prepare(here, Request("study", 7, 0, {"word": "a b"}, cap_s, True, "id"), job)
        self.directory = folder / "there" / "seven"
        shutil.copytree(here, self.directory)
        self.python, self.runner = python, str(bundle.place_runner(folder / "tools"))
        self.given = {"environment": environment(job, record, {}), "secrets": ["hunter2-x"]}

    def start(self) -> "subprocess.Popen[bytes]":
        file = self.directory / "environment.json"
        file.write_text(json.dumps(self.given))
        return subprocess.Popen(self.command("run", str(file)), stderr=subprocess.DEVNULL, cwd="/")

    def command(self, what: str, *words: str) -> list[str]:
        return [self.python, "-I", "-S", self.runner, what, str(self.directory), *words]

    def ask(self, what: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(what, *words), capture_output=True, text=True, cwd="/", check=False)

    def said(self, what: str) -> dict[str, Any]:
        asked = self.ask(what)
        assert asked.returncode == 0, asked.stderr
        found: dict[str, Any] = json.loads(asked.stdout) if asked.stdout else {}
        return found

    def outcome(self) -> dict[str, Any]:
        found = files.read_whole(str(self.directory / files.OUTCOME))
        assert found is not None
        return found


@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).name)
def test_any_python_since_3_8_runs_it(tmp_path: Path, python: str) -> None:
    script = 'printf %s "$ODD|$LYNCEUS_PARAM_WORD|$word" > seen; echo "$TOKEN"; echo \'::lynceus {"loss": 2}\'; (setsid sleep 1000 &)'
    node = Node(tmp_path, script, python)
    assert node.start().wait() == 0
    told = node.outcome()
    assert (told["end"], told["metrics"]) == ("finished", {"loss": 2.0})
    assert (tmp_path / "seen").read_text() == "$HOME a b|a b|a b"
    assert (node.directory / "stdout").read_text().startswith("***\n")
    assert not (node.directory / "environment.json").exists()
    assert node.said("state")["state"] == "ended"


@pytest.mark.parametrize("python", [pythons()[0], pythons()[-1]], ids=lambda path: Path(path).name)
def test_the_cap_holds_on_every_python(tmp_path: Path, python: str) -> None:
    node = Node(tmp_path, "trap '' TERM; (setsid sleep 1000 &) ; echo $$ > pid; sleep 1000", python, cap_s=1.0)
    assert node.start().wait() == 0
    assert (node.outcome()["end"], node.outcome()["seconds"]) == ("capped", 1.0)
    assert not lives(tmp_path)


def test_the_same_sources_give_the_same_bytes() -> None:
    first = bundle.runner()
    bundle.runner.cache_clear()
    assert bundle.runner() == first
    assert bundle.runner_name().startswith("runner-")


def lives(folder: Path) -> bool:
    """Whether the process runs whose number was written down; one that only waits for its burial does not."""
    try:
        stat = Path("/proc", (folder / "pid").read_text().strip(), "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def until_there(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_signal_ends_the_job_and_is_told(tmp_path: Path) -> None:
    node = Node(tmp_path, "touch ready; exec sleep 1000")
    run = node.start()
    until_there(tmp_path / "ready")
    assert node.said("state")["state"] == "running"
    run.send_signal(signal.SIGTERM)
    assert run.wait() == 0
    told = node.outcome()
    assert (told["end"], told["reason"], told["outside"]) == ("failed", "infra", True)
    assert told["detail"].startswith("ended from outside by SIGTERM after ")


def test_a_killed_runner_is_told_of_by_the_next_look(tmp_path: Path) -> None:
    node = Node(tmp_path, "echo $$ > pid; (setsid sleep 1000 &); touch ready; exec sleep 1000")
    assert node.said("state")["state"] == "prepared"
    run = node.start()
    until_there(tmp_path / "ready")
    run.kill()
    run.wait()
    seen = node.said("state")
    assert (seen["state"], seen["outcome"]["reason"]) == ("ended", "infra")
    assert not lives(tmp_path)


def test_cancel_and_end(tmp_path: Path) -> None:
    for number, what in enumerate(("cancel", "end")):
        folder = tmp_path / str(number)
        node = Node(folder, "touch ready; exec sleep 1000")
        run = node.start()
        until_there(folder / "ready")
        node.said(what)
        run.wait()
        assert node.said("state")["outcome"]["reason"] == ("user" if what == "cancel" else "infra")


def test_standard_input_brings_the_environment_too(tmp_path: Path) -> None:
    node = Node(tmp_path, 'test "$TOKEN" = hunter2-x')
    subprocess.run(node.command("run", "-"), input=json.dumps(node.given), text=True, check=True)
    assert node.outcome()["end"] == "finished"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    node = Node(tmp_path, "true")
    shutil.rmtree(node.directory)
    run = node.ask("run")
    assert (run.returncode, run.stderr) == (
        73,
        f"{os.uname().nodename} does not see the run directory {node.directory}\n",
    )
    assert node.said("state") == {"state": "gone", "outcome": None, "seconds": 0.0}


def test_an_environment_that_was_read_before_is_an_end(tmp_path: Path) -> None:
    """A runner that died between reading its environment and starting the job leaves nothing that could be started again."""
    node = Node(tmp_path, "true")
    assert node.ask("run", str(node.directory / "environment.json")).returncode == 0
    assert node.outcome()["detail"].startswith("its environment is gone: ")
