"""`setup` runs once per study and machine, however many workers start at once, and again if it did not finish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from local_runs import eventually
from lynceus.errors import InfrastructureError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.setup_command import run_setup
from lynceus.library.open_study import create_or_open
from lynceus.study.study import Study

SLOW = "echo run >> times; sleep 0.5"
WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_setup_command import made
from lynceus.jobfile.setup_command import run_setup
job, study = made(Path(sys.argv[2]), sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
run_setup(job, study, {}, lambda text: print(text, flush=True))
print("done", flush=True)
"""


def made(folder: Path, setup: str) -> tuple[Job, Study]:
    job = Job.parse(f"name: one\nrun: [a]\nsetup: {setup!r}\nspace: {{n: [1]}}\nprice: 1\nbudget: 1", folder)
    return job, create_or_open(prepare(job), f"sqlite:///{folder}/studies.db").study


def worker(folder: Path, setup: str) -> subprocess.Popen[str]:
    """A process that is about to run the setup; it begins with a line on its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(Path(__file__).parent), str(folder), setup],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_many_threads_run_it_once(tmp_path: Path) -> None:
    job, study = made(tmp_path, SLOW)
    said: list[str] = []
    threads = [threading.Thread(target=run_setup, args=(job, study, {}, said.append)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (tmp_path / "times").read_text() == "run\n"
    assert said == ["one: another worker on this machine runs setup; waiting until it is done."] * 4
    run_setup(job, study, {}, said.append)
    assert len(said) == 4
    edited, _ = made(tmp_path, SLOW.replace("run", "edited"))
    run_setup(edited, study, {}, said.append)
    assert (tmp_path / "times").read_text() == "run\nedited\n"


def test_other_processes_wait_for_it_even_if_its_worker_dies(tmp_path: Path) -> None:
    """The command goes on without its worker; a second one that ran beside it could break what it installs."""
    setup = "echo begins >> times; while [ ! -e go ]; do sleep 0.05; done; echo ends >> times"
    first, second = worker(tmp_path, setup), worker(tmp_path, setup)
    begin(first)
    eventually((tmp_path / "times").exists)
    begin(second)
    assert second.stdout is not None
    assert "waiting until it is done" in second.stdout.readline()
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(0.5)
    assert (tmp_path / "times").read_text() == "begins\n"
    (tmp_path / "go").touch()
    assert second.stdout.readline() == "done\n"
    second.wait()
    assert (tmp_path / "times").read_text() == "begins\nends\n" * 2
    for process in (first, second):
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_a_failure_is_tried_again(tmp_path: Path) -> None:
    job, study = made(tmp_path, "echo run >> times; test -e fixed")
    with pytest.raises(InfrastructureError, match="setup: it failed with exit code 1"):
        run_setup(job, study, {}, print)
    (tmp_path / "fixed").touch()
    run_setup(job, study, {}, print)
    run_setup(job, study, {}, print)
    assert (tmp_path / "times").read_text() == "run\nrun\n"


def test_something_left_in_the_background_holds_nobody_up(tmp_path: Path) -> None:
    job, study = made(tmp_path, "sleep 30 & echo $! > pid; echo said")
    began_s = time.monotonic()
    run_setup(job, study, {}, print)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - began_s < 25
    assert [path.read_text() for path in tmp_path.rglob("setup.log")] == ["said\n"]
