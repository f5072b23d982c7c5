"""Real searches whose executor or database hangs: what the user reads, and that Ctrl-C ends the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from cli_jobs import JOB, SLOW, started
from local_runs import eventually, processes_below
from lynceus.executors.supervisor import files

if TYPE_CHECKING:
    from postgres import Server

pytestmark = pytest.mark.usefixtures("here")

HANGING = """
import sys, time
from lynceus.executors.local import LocalExecutor
setattr(LocalExecutor, sys.argv.pop(1), lambda self, *given: time.sleep(1000))
from lynceus.cli.app import main
main()
"""
"""The command line with an executor of which one call never returns."""
BOUND_S = 5.0
BUSY_S = 15.0
"""How much longer a busy machine may take to start, schedule and end a process."""


class Lines:
    """The output of a process, read by a thread, so that a test can wait for a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.text = ""
        self._thread = threading.Thread(target=self._read, args=(process,))
        self._thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.text += line

    def wait_for(self, words: str) -> None:
        eventually(lambda: words in self.text)

    def whole(self) -> str:
        self._thread.join()
        return self.text


def hanging(here: Path, call: str, job: str) -> subprocess.Popen[str]:
    (here / "job.yaml").write_text(job)
    return subprocess.Popen(
        [sys.executable, "-c", HANGING, call, "run", "job.yaml", "-y"],
        cwd=here,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ends(process: subprocess.Popen[str], sent: signal.Signals) -> float:
    """Seconds from a signal to the end of a process."""
    began = time.monotonic()
    process.send_signal(sent)
    process.wait(timeout=60)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("call", "sent"), [("collect", signal.SIGINT), pytest.param("launch", signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_ctrl_c_leaves_a_search_whose_executor_hangs(here: Path, lynceus, call: str, sent: signal.Signals) -> None:
    process = hanging(here, call, JOB)
    lines = Lines(process)
    lines.wait_for("and the executor does not answer; nothing is started until it answers; Ctrl-C leaves")
    assert "no answer since " in lines.text
    eventually(lambda: "its executor has not answered since" in lynceus("status", "toy")[1])
    assert ends(process, sent) < BOUND_S + BUSY_S
    assert process.returncode == 130
    assert "Continue with: lynceus resume toy" in lines.whole()
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["running"], facts["trials"]) == (1, 0)
    code, _, _ = lynceus("resume", "toy")
    assert "its executor has not answered" not in lynceus("status", "toy")[1]
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert (code, [row["state"] for row in rows]) == (0, ["COMPLETE"] * 6)


def test_ctrl_c_leaves_a_search_whose_database_hangs(here: Path, lynceus, postgres: Server) -> None:
    """A server that is stopped neither answers nor refuses: a query waits for ever."""
    url = postgres.database(f"hangs-{uuid4().hex}")
    process = started(here, "run", "job.yaml", "-y", "--storage", url)
    lines, servers = Lines(process), server_processes(postgres)
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    try:
        lines.wait_for("the storage does not answer; nothing is started until it answers")
        assert ends(process, signal.SIGINT) < BOUND_S + BUSY_S
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    assert process.returncode == 130
    assert "open trials go on. Continue with: lynceus resume toy" in lines.whole()
    code, out, _ = lynceus("stop", "toy", "--kill", "--storage", url)
    assert (code, "1 open without a worker was ended" in out) == (0, True)


def server_processes(postgres: Server) -> list[int]:
    """The processes of a PostgreSQL server: they work in its data folder."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and Path(f"/proc/{name}/cwd").resolve() == (postgres.folder / "data").resolve():
                found.append(int(name))
        except OSError:
            continue
    assert found
    return found


def test_the_third_ctrl_c_leaves_trials_that_do_not_end(here: Path, lynceus) -> None:
    job = SLOW.replace("[sleep, '300']", "[sh, -c, 'trap \"\" TERM; sleep 300; sleep 300']").replace("100ms", "100s")
    process = started(here, "run", "job.yaml", "-y", job=job)
    lines = Lines(process)
    process.send_signal(signal.SIGINT)
    lines.wait_for("Ctrl-C again ends them now")
    process.send_signal(signal.SIGINT)
    lines.wait_for("Ctrl-C again leaves them")
    assert ends(process, signal.SIGINT) < BOUND_S + BUSY_S
    assert process.returncode == 130
    assert "left with 1 open trial, which goes on" in lines.whole()
    (supervisor,) = supervisors(here)
    os.kill(supervisor, signal.SIGKILL)
    assert lynceus("stop", "toy", "--kill")[0] == 0
    assert processes_below(here / ".lynceus") == set()


def supervisors(here: Path) -> list[int]:
    return [json.loads(path.read_text())["pid"] for path in (here / ".lynceus").rglob(files.STARTED)]


@pytest.mark.parametrize("command", [("stop", "toy", "--kill"), ("gc", "toy", "--abandoned", "--yes")])
def test_trials_end_even_if_their_supervisor_is_stopped(here: Path, lynceus, command: tuple[str, ...]) -> None:
    process = started(here, "run", "job.yaml", "-y")
    eventually(lambda: supervisors(here))
    os.kill(supervisors(here)[0], signal.SIGSTOP)
    process.kill()
    process.communicate()
    code, out, _ = lynceus(*command)
    assert (code, "ended" in out) == (0, True), out
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")]
    assert rows[0]["charged_usd"] > 0
    assert processes_below(here / ".lynceus") == set()
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []
