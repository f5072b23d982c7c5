"""Servers that misbehave, started by the local executor: one sentence, and nothing is left running."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand, environment
from lynceus.executors.local import LocalExecutor
from lynceus.executors.run_directory import prepare
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import write_runner
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.serving import served, serving_checks


def make(problem: Problem, job: JobCommand, root: Path) -> LocalExecutor:
    return LocalExecutor(problem, job, root)


SLOW = {
    "clients that wait for answers",
    "a server that never listens",
    "a server that does not speak HTTP",
    "a server that asks for a retry",
    "a server that cannot be started",
    "a server that fails in part",
    "a load command that does not end",
    "what the server prints is no result",
    "parallel runs have ports of their own",
}
"""Near others in what they check: only with `make test-all`."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in serving_checks()]
)
def test_servers_on_the_local_executor(name: str, tmp_path: Path) -> None:
    serving_checks()[name](ExecutorHarness(make, tmp_path))


def test_the_slow_ones_exist() -> None:
    assert set(serving_checks()) >= SLOW


def test_the_runner_works_from_the_single_file_of_nodes(tmp_path: Path) -> None:
    """Without Lynceus on the node: only the copied run directory and the file that holds supervisor and runner."""
    harness = ExecutorHarness(make, tmp_path)
    job = served(harness, stop_after_s=0.5)
    request = harness.request()
    here, node = tmp_path / "here" / "0", tmp_path / "node"
    record = prepare(here, request, job)
    shutil.copytree(here, node)
    given = {"environment": environment(job, record, {"PATH": os.environ["PATH"]}), "secrets": [], "inherit": False}
    command = [sys.executable, "-I", "-S", str(write_runner(tmp_path / "tools")), "run", str(node), "-"]
    subprocess.run(command, input=json.dumps(given).encode(), check=True, cwd="/", timeout=120)
    outcome = files.read_json(str(node / files.OUTCOME))
    assert outcome is not None
    assert outcome["end"] == "finished", outcome
    assert outcome["metrics"]["throughput"] > 0
    harness.check_all_ended()
