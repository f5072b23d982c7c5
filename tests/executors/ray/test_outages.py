"""A cluster that hangs, refuses, answers garbage or loses its head."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import eventually
from lynceus.executors.command import JobCommand
from lynceus.executors.ray.client import DriverClient
from lynceus.executors.ray.executor import RayExecutor
from lynceus.executors.ray.options import RayOptions
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executor_outages import outage_checks
from ray_bench import Bench
from ray_runs import is_alive
from relay import Relay, relay

LAUNCHED, CANCELLED_EARLY, ENDS, CANCELLED = outage_checks()
QUICK = [("hangs", CANCELLED_EARLY)]
ALL = [(kind, name) for kind in ("hangs", "refuses", "answers garbage", "its head hangs") for name in outage_checks()]


@pytest.fixture(scope="module")
def line(cluster: Bench) -> Iterator[Relay]:
    """The way to the head of the cluster."""
    with relay(cluster.client()) as made:
        made.open()
        yield made


@contextlib.contextmanager
def frozen_head(cluster: Bench) -> Iterator[None]:
    """The process that holds the state of the cluster is stopped."""
    found = subprocess.run(
        ["pgrep", "-f", f"gcs_server .*{cluster.folder}"], capture_output=True, text=True, check=True
    )
    head = int(found.stdout.split()[0])
    os.kill(head, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(head, signal.SIGCONT)


@pytest.mark.parametrize(
    ("kind", "name"), [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in ALL if one not in QUICK)]
)
def test_the_ray_executor_survives_outages(kind: str, name: str, tmp_path: Path, cluster: Bench, line: Relay) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> RayExecutor:
        return RayExecutor(problem, job, root, RayOptions(address=line.address))

    faults = {"hangs": line.hanging, "refuses": line.refusing, "answers garbage": line.babbling}
    fault = faults.get(kind, lambda: frozen_head(cluster))
    outage_checks()[name](ExecutorHarness(make, tmp_path, patience_s=150.0), fault)


def test_a_driver_ends_with_lynceus_even_if_the_cluster_hangs(line: Relay, tmp_path: Path) -> None:
    script = f"""
import os, signal, time
from lynceus.executors.ray.client import DriverClient, DriverUnavailableError
client = DriverClient({line.address!r})
while True:
    try:
        client.call("folders")
    except DriverUnavailableError:
        pass
    if client._connecting_s is not None:
        break
    time.sleep(0.05)
print(client._driver.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with line.hanging():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
        driver = int(done.stdout)
        eventually(lambda: not is_alive(driver))


@pytest.mark.slow
def test_a_driver_that_answers_garbage_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that reads nothing, so that a large request cannot be sent."""
    for script, words in (
        ("head -c 200 /dev/urandom | tr -d '\\\\n'; echo", "cannot be read"),
        ("exec sleep 600", "has read nothing"),
    ):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        client = DriverClient("127.0.0.1:9" if "urandom" in script else "h" * 200_000 + ":9")
        until = time.monotonic() + 60
        while client.outages.current() is None and time.monotonic() < until:
            with contextlib.suppress(Exception):
                client.call("folders")
        outage = client.outages.current()
        assert outage is not None
        client.close()
        assert words in str(client._problem)
