"""Statistics of what jobs stream, and the sequential test that ends a run when a limit is clear."""

import sys
from pathlib import Path

import numpy as np
import pytest

from local_runs import Bench, problem_of
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request
from lynceus.executors.supervisor.reports import Reports
from lynceus.executors.supervisor.streams import ALPHA, StreamLimit, Streams
from lynceus.problem.objective import Constraint
from lynceus.trial.outcome import End


def limit(text: str) -> StreamLimit:
    one = Constraint.parse(text)
    return StreamLimit({"name": one.metric, "bound": one.bound, "at_least": one.at_least})


def decided(one: StreamLimit, values: np.ndarray) -> tuple[bool | None, int]:
    """The verdict, and after how many values."""
    for count, value in enumerate(values.tolist(), start=1):
        one.add(value)
        if one.met is not None:
            return one.met, count
    return None, len(values)


@pytest.mark.parametrize(("statistic", "share"), [("p99", 0.01), ("p95", 0.05), ("median", 0.5)])
@pytest.mark.parametrize("truth", ["at the limit", "just kept"])
def test_a_limit_that_holds_is_hardly_ever_called_broken(statistic: str, share: float, truth: str) -> None:
    """The stated error rate, however often one looks: here after every value."""
    wrong, runs = 0, 300
    rng = np.random.default_rng(1)
    for _ in range(runs):
        exceed = share if truth == "at the limit" else 0.9 * share
        values = np.where(rng.random(1500) < exceed, 2.0, 0.5)
        wrong += decided(limit(f"{statistic}(x) <= 1"), values)[0] is False
    assert wrong <= ALPHA * runs + 3 * (ALPHA * runs) ** 0.5


def test_a_limit_that_is_broken_is_hardly_ever_called_met() -> None:
    rng = np.random.default_rng(2)
    met = [decided(limit("p90(x) <= 1"), np.where(rng.random(1500) < 0.11, 2.0, 0.5))[0] is True for _ in range(300)]
    assert sum(met) <= ALPHA * 300 + 3 * (ALPHA * 300) ** 0.5


def test_clear_cases_end_early() -> None:
    rng = np.random.default_rng(3)
    slow, fast = rng.lognormal(np.log(400.0), 0.3, 5000), rng.lognormal(np.log(40.0), 0.3, 5000)
    verdict, count = decided(limit("p99(x) <= 200"), slow)
    assert verdict is False
    assert count < 20
    verdict, count = decided(limit("p95(x) <= 200"), fast)
    assert verdict is True
    assert count < 300


def test_limits_from_below_and_extremes() -> None:
    assert decided(limit("p5(x) >= 3"), np.full(50, 1.0))[0] is False
    assert decided(limit("p5(x) >= 3"), np.full(500, 4.0))[0] is True
    assert decided(limit("max(x) <= 3"), np.array([1.0, 2.0, 5.0])) == (False, 3)
    assert decided(limit("max(x) <= 3"), np.ones(1000))[0] is None, "the next value may be larger"
    assert decided(limit("mean(x) <= 3"), np.full(1000, 9.0))[0] is None, (
        "a mean has no bound without one on its values"
    )


@pytest.mark.parametrize("count", [1, 7, 100, 999])
def test_the_statistic_keeps_its_limit_where_few_enough_values_are_beyond_it(count: int) -> None:
    values = np.random.default_rng(count).normal(10.0, 3.0, count)
    for text in ("p90(x) <= 12", "median(x) <= 10", "p10(x) >= 7"):
        one, constraint = limit(text), Constraint.parse(text)
        for value in values.tolist():
            one.add(value)
        assert one.value is not None
        beyond = (values < constraint.bound if constraint.at_least else values > constraint.bound).mean()
        allowed = {"p90(x) <= 12": 0.1, "median(x) <= 10": 0.5, "p10(x) >= 7": 0.1}[text]
        assert constraint.holds(one.value) == (beyond <= allowed + 1e-12)


def test_reports_hold_the_statistics_and_the_last_value() -> None:
    streams = Streams([{"name": "p50(latency)", "bound": 10.0, "at_least": False}])
    reports = Reports("/no/such/file", {"latency": r"took (\d+)"}, streams=streams)
    reports.add_output("stdout", b"took 3\ntook 9\ntook 4\n", 1.0)
    reports.finish(2.0)
    assert reports.metrics == {"latency": 4.0, "p50(latency)": 4.0}


PROGRAM = """
import json, time
for number in range(2000):
    print('::lynceus ' + json.dumps({'latency': LATENCY}), flush=True)
    time.sleep(0.005 if number < 400 else 0.2)
"""


@pytest.mark.parametrize(
    ("latency", "ends_when", "end"), [(900, "broken", End.TIMEOUT), (20, "clear", End.FINISHED), (900, "never", None)]
)
def test_a_real_run_ends_when_its_limit_is_clear(tmp_path: Path, latency: int, ends_when: str, end: End | None) -> None:
    script = tmp_path / "job.py"
    script.write_text(PROGRAM.replace("LATENCY", str(latency)))
    bench = Bench(tmp_path / "runs", JobCommand([sys.executable, str(script)], workdir=tmp_path), problem_of())
    limits = (Constraint.parse("p90(latency) <= 200"),)
    timeout_s = 60.0 if end is not None else 4.0
    ticket = bench.executor.launch(
        Request("study", 0, 0, bench.problem.space.point(0), timeout_s, True, "id", limits, ends_when)  # type: ignore[arg-type]
    )
    outcome = bench.wait(ticket)
    assert outcome.metrics["p90(latency)"] == latency
    if end is None:
        assert outcome.end is End.TIMEOUT
        assert "beyond doubt" not in outcome.detail
        return
    assert outcome.end is end
    assert outcome.seconds < timeout_s
    assert "beyond doubt" in outcome.detail
