"""Several loads on one server: real servers, started once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.local import LocalExecutor
from lynceus.executors.serve import Ramp, Requests
from lynceus.executors.serving.run import Measurement
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


def run(
    tmp_path: Path, limit: str, clients: int, *habits: str, most: int = 1, request_timeout_s: float = 2.0
) -> Outcome:
    harness = ExecutorHarness(make, tmp_path)
    job = served(harness, *habits, load=replace(LOAD, request_timeout_s=request_timeout_s), stop_after_s=0.5)
    assert job.serve is not None
    ramp = Ramp("clients", SPACE, (Constraint.parse(limit),), most)
    job = replace(job, serve=replace(job.serve, ramp=ramp))
    _, outcome = harness.run(job, replace(harness.request(timeout_s=60.0), params={"clients": clients}))
    harness.check_all_ended()
    return outcome


def loads(outcome: Outcome) -> list[str]:
    return sorted(name.partition("@")[2] for name in outcome.metrics if name.startswith("throughput@"))


@pytest.mark.parametrize(
    ("limit", "clients", "most", "found"),
    [
        ("p99_ttft <= 1e6", 1, 1, ["clients=2"]),
        ("p99_ttft <= 1e-6", 4, 2, ["clients=1", "clients=2"]),
        ("p99_ttft <= 1e6", 8, 1, []),
    ],
    ids=["a higher load while limits are kept", "lower loads while one is broken", "nothing above the highest"],
)
def test_further_loads_on_the_same_server(
    tmp_path: Path, limit: str, clients: int, most: int, found: list[str]
) -> None:
    outcome = run(tmp_path, limit, clients, most=most)
    assert outcome.end is End.FINISHED, outcome
    assert loads(outcome) == found
    assert outcome.metrics["measuring_s"] >= 0.5
    assert outcome.metrics["usd_per_mtok"] > 0
    for row in found:
        assert outcome.metrics[f"usd_per_mtok@{row}"] > 0
        assert outcome.metrics[f"measuring_s@{row}"] >= 0.5


def test_no_load_begins_that_could_not_end_before_the_timeout(tmp_path: Path) -> None:
    # A load lasts half a second and waits at most two minutes for answers; the trial has one minute.
    outcome = run(tmp_path, "p99_ttft <= 1e6", 1, request_timeout_s=60.0)
    assert (outcome.end, loads(outcome)) == (End.FINISHED, [])


def test_what_was_measured_before_a_crash_counts(tmp_path: Path) -> None:
    outcome = run(tmp_path, "p99_ttft <= 1e6", 1, "crashes-in-a-crowd", most=3)
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] > 0
    assert "clients=2" in loads(outcome)
    assert "clients=8" not in loads(outcome)


class Scripted(Measurement):
    """A measurement whose loads have known results."""

    def __init__(self, throughput: Mapping[int, float], ttft: Mapping[int, float]) -> None:
        super().__init__("", {"serve": {}, "cap_s": None}, 1)
        self.throughput, self.ttft, self.measured = throughput, ttft, list[int]()

    def climb_from(self, clients: int) -> list[int]:
        ramp: dict[str, Any] = {
            "limits": [{"name": "ttft", "bound": 10.0, "at_least": False}],
            "most": 9,
            "measuring_s": 1.0,
        }
        order = sorted(self.throughput)
        ramp["higher"] = [{"row": f"clients={one}", "load": {"clients": one}} for one in order if one > clients]
        ramp["lower"] = [
            {"row": f"clients={one}", "load": {"clients": one}} for one in reversed(order) if one < clients
        ]
        self._climb(ramp, self._measured({"clients": clients}, lambda: None, lambda share: None), lambda: None)
        return self.measured[1:]

    def _measured(
        self, load: dict[str, Any], alive: Callable[[], None], progress: Callable[[float], None]
    ) -> dict[str, float]:
        clients = load["clients"]
        self.measured.append(clients)
        return {"throughput": self.throughput[clients], "ttft": self.ttft[clients], "measuring_s": 1.0}

    def _report(self, values: dict[str, float]) -> None:
        pass


TTFT = {1: 1.0, 2: 2.0, 4: 5.0, 8: 20.0, 16: 80.0}


@pytest.mark.parametrize(
    ("throughput", "start", "measured"),
    [
        ({1: 10.0, 2: 19.0, 4: 35.0, 8: 60.0, 16: 70.0}, 1, [2, 4, 8]),
        ({1: 10.0, 2: 19.0, 4: 35.0, 8: 60.0, 16: 70.0}, 16, [8, 4]),
        ({1: 10.0, 2: 10.05, 4: 10.1, 8: 10.1, 16: 10.1}, 1, [2]),
    ],
    ids=["up to the first that breaks a limit", "down to the first that keeps it", "no further once throughput stays"],
)
def test_where_a_ramp_ends(throughput: dict[int, float], start: int, measured: list[int]) -> None:
    assert Scripted(throughput, TTFT).climb_from(start) == measured
