"""The process that talks to SkyPilot: it is missing, dies, and is started again."""

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from fake_skypilot_bench import FakeSkyPilot
from local_runs import eventually
from lynceus.errors import InputError
from lynceus.executors.skypilot.bridge import Bridge, SkyError
from lynceus.trial.outcome import End
from skypilot_runs import StudyRuns, wait


def test_a_bridge_process_that_dies_is_started_again(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study()
    executor = made.executor('touch "$FOLDER/log"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "log").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    assert executor._bridge._sdk is not None
    os.kill(executor._bridge._sdk.process.pid, signal.SIGKILL)
    (made.folder / "go").touch()
    assert wait(executor, ticket).end is End.FINISHED


def test_a_missing_python_is_refused(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(python="/nowhere/bin/python")
    with pytest.raises(InputError, match=r"executor\.python: /nowhere/bin/python does not exist"):
        made.executor()


def test_a_python_without_skypilot(tmp_path: Path) -> None:
    bridge = Bridge(Path(sys.executable), tmp_path / "log")
    answer: Future[Any] = bridge.call("clusters", prefix="")
    with pytest.raises(SkyError, match="has no SkyPilot"):
        answer.result(60)
    bridge.close()


def test_open_calls_of_a_dead_process_fail(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nsleep 1000 & echo $! >> {tmp_path}/children; wait\n")
    python.chmod(0o755)
    bridge = Bridge(python, tmp_path / "log")

    def children() -> list[int]:
        return [int(line) for line in (tmp_path / "children").read_text().split()]

    first = bridge.call("clusters", prefix="")
    eventually((tmp_path / "children").exists)
    eventually(children)
    assert bridge._sdk is not None
    os.kill(bridge._sdk.process.pid, signal.SIGKILL)  # its child keeps the pipe open, so this is not noticed yet
    bridge._sdk.process.wait()
    second = bridge.call("clusters", prefix="")
    eventually(lambda: len(children()) == 2)
    assert not first.done()
    os.kill(children()[0], signal.SIGKILL)
    with pytest.raises(SkyError, match="the process that talks to SkyPilot ended"):
        first.result(60)
    assert not second.done(), "the new process continues"
    bridge.close()
    os.kill(children()[1], signal.SIGKILL)
