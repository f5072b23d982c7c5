"""Another unit of a metric, in objective and limits, changes no decision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.replay.job import load_job
from lynceus.replay.tables import data_folder
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.run_loop import explore
from lynceus.study.study import Study

SPACE = Space.build(
    [Categorical("gpu", ["a", "b", "c"]), Integer("n", values=(1, 2, 4, 8))], price="n * (1 + (gpu == 'b') * 2)"
)


def decisions(problem: Problem, measured: Measurements, most: int = 14) -> tuple[list[int], str]:
    """The rows that the default policy runs, and whether it stopped by itself."""
    clock = SimulatedClock()
    capped = replace(problem, budget=replace(problem.budget, trials=most), deterministic=True)
    study = Study(capped, preset("lynceus"), clock=clock)
    explore(study, TableExecutor(capped, measured, clock), clock)
    assert study.stopped is not None
    return [seen.row for seen in study.observations], str(study.stopped.kind)


def in_other_units(problem: Problem, measured: Measurements, scales: dict[str, float]) -> tuple[Problem, Measurements]:
    limits = tuple(replace(each, bound=each.bound * scales.get(each.metric, 1.0)) for each in problem.constraints)
    metrics = {name: values * scales.get(name, 1.0) for name, values in measured.metrics.items()}
    return problem.with_constraints(limits), replace(measured, metrics=metrics)


SCALES = st.sampled_from([1e-3, 0.0625, 60.0, 1e3])
"""Milliseconds, seconds, minutes …"""


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(
        [
            "minimize latency",
            "maximize throughput",
            "minimize price / throughput",
            "minimize price",
            "minimize latency * price",
        ]
    ),
    quantile=st.sampled_from([0.2, 0.5, 0.8]),
    scales=st.fixed_dictionaries({"latency": SCALES, "throughput": SCALES}),
)
def test_random_problems_are_searched_alike_in_every_unit(
    seed: int, objective: str, quantile: float, scales: dict[str, float]
) -> None:
    rng = np.random.default_rng(seed)
    size = np.log(SPACE.price_per_second)
    throughput = np.exp(0.8 * size + rng.normal(0.0, 0.3, len(SPACE)) + 9.0)
    latency = np.exp(-0.5 * size + rng.normal(0.0, 0.4, len(SPACE)))
    measured = Measurements(rng.uniform(60.0, 300.0, len(SPACE)), {"throughput": throughput, "latency": latency})
    limit = Constraint("latency", float(np.quantile(latency, quantile)))
    problem = Problem(SPACE, Objective.parse(objective), (limit,))
    assert decisions(*in_other_units(problem, measured, scales)) == decisions(problem, measured)


@pytest.mark.parametrize("spec", ["argonne_mistral-7b_128.tight", "ibm_flan-t5-xl.interactive"])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_published_measurements_are_searched_alike_in_every_unit(spec: str, scale: float) -> None:
    folder = data_folder()
    path = None if folder is None else folder / "llm_serving" / "specs" / f"{spec}.yaml"
    if path is None or not path.is_file():
        pytest.skip("the measured tables are not installed")
    job = load_job(path)
    plain = decisions(job.problem, job.measurements, 25)
    for name in job.problem.metrics:
        assert decisions(*in_other_units(job.problem, job.measurements, {name: scale}), 25) == plain
