"""Several loads on one server: real servers, started once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.local import LocalExecutor
from lynceus.executors.serve import Ramp, Requests
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.serving import served
from lynceus.trial.outcome import End, Outcome

SPACE = Space.build([Integer("clients", values=(1, 2, 4, 8))], price="1")
LOAD = Requests(concurrency="${clients}", prompt_tokens=4, output_tokens=8, request_timeout_s=2.0)


def make(problem: Problem, job: JobCommand, root: Path) -> LocalExecutor:
    return LocalExecutor(problem, job, root)


def run(tmp_path: Path, limit: str, clients: int, *habits: str, most: int = 2, timeout_s: float = 60.0) -> Outcome:
    harness = ExecutorHarness(make, tmp_path)
    job = served(harness, *habits, load=LOAD, stop_after_s=0.5)
    assert job.serve is not None
    ramp = Ramp("clients", SPACE, (Constraint.parse(limit),), most)
    job = replace(job, serve=replace(job.serve, ramp=ramp))
    _, outcome = harness.run(job, replace(harness.request(timeout_s=timeout_s), params={"clients": clients}))
    harness.check_all_ended()
    return outcome


def loads(outcome: Outcome) -> list[str]:
    return sorted(name.partition("@")[2] for name in outcome.metrics if name.startswith("throughput@"))


@pytest.mark.parametrize(
    ("limit", "clients", "found"),
    [
        ("p99_ttft <= 1e6", 1, ["clients=2", "clients=4"]),
        ("p99_ttft <= 1e-6", 4, ["clients=1", "clients=2"]),
        ("p99_ttft <= 1e6", 8, []),
    ],
    ids=["higher loads while limits are kept", "lower loads while one is broken", "nothing above the highest"],
)
def test_further_loads_on_the_same_server(tmp_path: Path, limit: str, clients: int, found: list[str]) -> None:
    outcome = run(tmp_path, limit, clients)
    assert outcome.end is End.FINISHED, outcome
    assert loads(outcome) == found
    assert outcome.metrics["measuring_s"] >= 0.5
    assert outcome.metrics["usd_per_mtok"] > 0
    for row in found:
        assert outcome.metrics[f"usd_per_mtok@{row}"] > 0
        assert outcome.metrics[f"measuring_s@{row}"] >= 0.5


def test_no_load_begins_that_could_not_end_before_the_timeout(tmp_path: Path) -> None:
    # A load lasts half a second and waits at most four seconds for answers.
    outcome = run(tmp_path, "p99_ttft <= 1e6", 1, timeout_s=5.0)
    assert (outcome.end, loads(outcome)) == (End.FINISHED, [])


def test_what_was_measured_before_a_crash_counts(tmp_path: Path) -> None:
    outcome = run(tmp_path, "p99_ttft <= 1e6", 1, "crashes-in-a-crowd")
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] > 0
    assert loads(outcome) == ["clients=2"]
