"""Synthetic streams: their quantiles, and runs of a table that end when a limit is clear."""

import numpy as np
import pytest

from lynceus.executors.interface import Request
from lynceus.executors.synthetic_streams import SyntheticStream, early_end
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.problem.billing import Billing
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.trial.outcome import End

SPACE = Space.build([Integer("pods", 1, 3)], price="pods")
STREAM = SyntheticStream(np.array([400.0, 190.0, 20.0]), np.array([900.0, 260.0, 60.0]), every_s=0.5, start_s=30.0)
LIMIT = Constraint.parse("p95(ttft) <= 200")
PROBLEM = Problem(SPACE, Objective.parse("minimize price"), (LIMIT,), billing=Billing())
MEASURED = Measurements(np.full(3, 600.0), {"p95(ttft)": STREAM.p95}, streams={"ttft": STREAM})


def request(row: int, ends_when: str) -> Request:
    return Request("study", row, row, SPACE.point(row), 1e6, True, "", (LIMIT,), ends_when)  # type: ignore[arg-type]


def test_the_values_have_the_published_quantiles() -> None:
    values = STREAM.values(0, 1e5, np.random.default_rng(1))
    assert np.median(values) == pytest.approx(400.0, rel=0.01)
    assert np.quantile(values, 0.95) == pytest.approx(900.0, rel=0.02)
    assert len(STREAM.values(0, 29.0, np.random.default_rng(1))) == 0, "a run that does not get beyond its start"


@pytest.mark.parametrize("ends_when", ["never", "broken", "clear"])
def test_runs_of_a_table_end_when_their_answer_is_clear(ends_when: str) -> None:
    clock = SimulatedClock()
    executor = TableExecutor(PROBLEM, MEASURED, clock, seed=3)
    tickets = [executor.launch(request(row, ends_when)) for row in range(3)]
    clock.sleep(1e4), clock.sleep(1e4), clock.sleep(1e4)
    slow, near, fast = (executor.collect(ticket) for ticket in tickets)
    assert slow is not None
    assert near is not None
    assert fast is not None
    assert slow.end is (End.FINISHED if ends_when == "never" else End.TIMEOUT)
    if ends_when != "never":
        assert slow.seconds < 60.0
        assert slow.metrics["p95(ttft)"] > 200.0
        assert slow.charged_usd == pytest.approx(slow.seconds / 3600)
    assert fast.end is End.FINISHED
    assert (fast.seconds < 600.0) == (ends_when == "clear")
    assert fast.metrics["p95(ttft)"] <= 200.0


def test_hardly_any_run_is_ended_wrongly() -> None:
    """Limits at the published 95th percentile itself, where nothing is clear."""
    limit = Constraint("p95(ttft)", 260.0 * 1.001)
    ended = [
        early_end({"ttft": STREAM}, Request("s", number, 1, {}, 1e6, True, "", (limit,), "broken"), 600.0, seed=5)
        for number in range(200)
    ]
    assert sum(one is not None for one in ended) <= 6
