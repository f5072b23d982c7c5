"""Searches by hand, as policies: in stages, and in the order of a known cost."""

from __future__ import annotations

import numpy as np
import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.study.run_loop import explore


def searched(name: str) -> tuple[lynceus.Study, lynceus.Space]:
    """A search of twelve deployments, of which those with two GPUs are fast enough, and large batches too slow."""
    space = lynceus.Space.build(
        [
            lynceus.Categorical("gpu", ["L4", "A100"]),
            lynceus.Ordinal("tp", [1, 2]),
            lynceus.Ordinal("batch", [1, 8, 64]),
        ],
        price="(0.8 if gpu == 'L4' else 3.0) * tp",
    )
    latency = np.array(
        [
            {"L4": 400.0, "A100": 150.0}[str(gpu)] / tp + 3.0 * batch
            for gpu, tp, batch in zip(space.column("gpu"), space.column("tp"), space.column("batch"), strict=True)
        ]
    )
    problem = lynceus.Problem(
        space, constraints=(lynceus.Constraint.parse("p99 <= 250"),), budget=lynceus.Budget(usd=100.0)
    )
    clock = SimulatedClock()
    study = lynceus.Study(problem, preset(name), clock=clock)
    measured = Measurements(np.full(len(space), 60.0), {"p99": latency})
    explore(study, TableExecutor(problem, measured, clock), clock)
    return study, space


def test_known_cost_takes_the_first_that_keeps_the_limit() -> None:
    study, _ = searched("known-cost")
    rows = [seen.row for seen in study.observations]
    prices = study.problem.price[rows]
    assert (np.diff(prices) >= 0).all(), "the order is that of prices"
    kept = [seen.outcome.metrics["p99"] <= 250 for seen in study.observations]
    assert kept == [False] * (len(kept) - 1) + [True]
    assert study.best_params["gpu"] == "L4"
    assert study.best_params["tp"] == 2


def test_staged_tries_machines_first_and_then_the_rest_on_the_best() -> None:
    study, space = searched("staged")
    points = [space.point(seen.row) for seen in study.observations]
    first = [(point["gpu"], point["tp"]) for point in points[:4]]
    assert len(set(first)) == 4
    assert len({point["batch"] for point in points[:4]}) == 1, "one batch size is held"
    rest = points[4:]
    assert len({(point["gpu"], point["tp"]) for point in rest}) <= 1, "one machine is left"
    assert len(points) <= 4 + 2


@pytest.mark.parametrize("name", ["staged", "known-cost"])
def test_there_is_nothing_to_look_ahead_with(name: str) -> None:
    with pytest.raises(InputError, match="has no model to look ahead with"):
        preset(name, lookahead=1)
