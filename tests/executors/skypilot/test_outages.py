"""An API server that hangs, refuses or answers garbage, and a process between Lynceus and it that does."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_skypilot_bench import FakeSkyPilot
from local_runs import eventually
from lynceus.errors import InfrastructureError
from lynceus.executors.command import JobCommand
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.skypilot.bridge import Bridge, SkyError
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executor_outages import outage_checks
from lynceus.trial.outcome import End
from skypilot_runs import StudyRuns, options, wait

LAUNCHED, CANCELLED_EARLY, ENDS, CANCELLED = outage_checks()
QUICK = [("hangs", CANCELLED), ("garbage", LAUNCHED)]
ALL = [(kind, name) for kind in ("hangs", "refuses", "garbage") for name in outage_checks()]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is asked for a sign of life more often, so that tests need not wait for it."""
    monkeypatch.setattr("lynceus.executors.skypilot.server_watch._PING_S", 0.5)
    monkeypatch.setattr("lynceus.executors.skypilot.server_watch._SILENT_S", 1.5)


@pytest.mark.parametrize(
    ("kind", "name"), [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in ALL if one not in QUICK)]
)
def test_the_skypilot_executor_survives_outages(fake: FakeSkyPilot, kind: str, name: str, tmp_path: Path) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> SkyPilotExecutor:
        return SkyPilotExecutor(ExecutorContext(problem, job, root), options(fake))

    outage_checks()[name](ExecutorHarness(make, tmp_path, rents_machines=True), lambda: fake.fault(kind))
    eventually(lambda: not fake.processes())
    eventually(lambda: not fake.clusters())


@pytest.mark.slow
def test_a_stopped_bridge_process_blocks_nobody(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More is sent to it than a pipe holds; when it has been silent for long, it is replaced."""
    monkeypatch.setattr("lynceus.executors.skypilot.server_watch._REPLACE_S", 3.0)
    made = study()
    executor = made.executor("true")
    executor._watch.look()
    eventually(lambda: executor._bridge.is_ready)
    assert executor._bridge._sdk is not None
    stopped = executor._bridge._sdk.process
    os.kill(stopped.pid, signal.SIGSTOP)
    began = time.monotonic()
    for _ in range(100):
        executor._bridge.call("clusters", prefix="x" * 4000)
    ticket = executor.launch(made.request(0))
    assert time.monotonic() - began < 5.0
    assert wait(executor, ticket).end is End.FINISHED
    assert stopped.poll() is not None


@pytest.mark.parametrize(
    "line", ["<html>", '{"id": 1}', "[]", '{"id": 1, "error": "no"}', '{"id": "\\udcff", "error": {}}']
)
def test_a_bridge_process_that_answers_garbage_is_replaced(tmp_path: Path, line: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{line}'\nexec sleep 600\n")
    python.chmod(0o755)
    bridge = Bridge(python, tmp_path / "log")
    answer = bridge.call("clusters", prefix="")
    with pytest.raises(SkyError, match="cannot be read"):
        answer.result(60)
    bridge.close()


def test_cleaning_up_says_what_is_wrong(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    executor = study().executor("true")
    began = time.monotonic()
    with (
        fake.fault("hangs"),
        pytest.raises(InfrastructureError, match=r"API server has not answered for \d+ s; try again"),
    ):
        executor.owned_resources()
    assert time.monotonic() - began < 15.0
