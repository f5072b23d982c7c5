"""Ernest's law over earlier jobs of other input sizes: the fit, what counts as such a job, and the search with and without sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.sized_scale_out import SizedScaleOut, sized_runs
from lynceus.models.state import State
from lynceus.policy.past_systems import reads_history
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.testing import check_surrogate

SPACE = Space.build(
    [Categorical("vm", ["slow", "fast"]), Ordinal("nodes", [2, 4, 6, 8, 12, 16])],
    price="nodes * (1.0 + 0.4 * (vm == 'fast'))",
)
NODES = np.array([float(one) for one in SPACE.columns["nodes"].tolist()])
FAST = np.array([one == "fast" for one in SPACE.columns["vm"].tolist()])
NOISE = np.exp(np.random.default_rng(4).normal(scale=0.03, size=(3, len(SPACE))))


def seconds_at(gb: float) -> FloatArray:
    return np.asarray(30.0 + np.where(FAST, 20.0, 35.0) * gb / NODES + 4.0 * np.log(NODES) + 1.5 * NODES)


def past(gb: float, seconds: FloatArray, size: str | None = None) -> PastJob:
    columns = {name: tuple(cells.tolist()) for name, cells in SPACE.columns.items()}
    given = JobInput.read(size or f"{gb} GB")
    return PastJob(f"{gb} GB", columns, tuple(seconds.tolist()), (False,) * len(seconds), input=given)


HISTORY = tuple(past(gb, seconds_at(gb) * noise) for gb, noise in zip((10.0, 20.0, 40.0), NOISE, strict=True))


def problem_with(*history: PastJob, size: str | None = "80 GB") -> Problem:
    given = None if size is None else JobInput.read(size)
    return Problem(SPACE, budget=Budget(usd=100.0), history=history, deterministic=True, input=given)


def predicted(problem: Problem) -> FloatArray:
    return np.exp(SizedScaleOut()(State.present(problem, ()), 0).mean[0, :, 0])


def test_it_meets_the_contract_of_surrogates() -> None:
    check_surrogate(SizedScaleOut())


def test_the_fit_is_the_least_squares_of_a_brute_force_search() -> None:
    """Of all subsets of the four terms, the least squares with coefficients ≥ 0 and the smallest relative error."""
    found = predicted(problem_with(*HISTORY))
    for kind in (FAST, ~FAST):
        nodes, took = np.tile(NODES[kind], 3), np.concatenate([np.array(job.seconds)[kind] for job in HISTORY])
        share = np.repeat([10 / 80, 20 / 80, 40 / 80], kind.sum())
        terms = np.stack([np.ones_like(nodes), share / nodes, np.log(nodes), nodes], axis=1)
        best, theta = np.inf, np.zeros(4)
        for mask in range(1, 16):
            kept = [term for term in range(4) if mask >> term & 1]
            weights = np.linalg.lstsq(terms[:, kept] / took[:, None], np.ones(len(took)), rcond=None)[0]
            error = float(np.square(terms[:, kept] @ weights / took - 1).sum())
            if (weights >= 0).all() and error < best:
                best, theta = error, np.zeros(4)
                theta[kept] = weights
        here = NODES[kind]
        wanted = np.stack([np.ones_like(here), 1 / here, np.log(here), here], axis=1) @ theta
        assert found[kind] == pytest.approx(wanted, rel=1e-6)


def test_the_time_at_a_size_that_never_ran_follows_from_smaller_ones() -> None:
    exact = [past(gb, seconds_at(gb)) for gb in (10.0, 20.0, 40.0)]
    assert predicted(problem_with(*exact)) == pytest.approx(seconds_at(80.0), rel=1e-4)
    assert predicted(problem_with(*exact, size="80 GiB")) == pytest.approx(seconds_at(80 * 2**30 / 1e9), rel=1e-4)


def test_only_finished_runs_of_related_jobs_with_a_size_count() -> None:
    one = HISTORY[0]
    assert len(sized_runs(problem_with(one)).rows) == len(SPACE)
    assert len(sized_runs(problem_with(replace(one, stopped=(True, *one.stopped[1:])))).rows) == len(SPACE) - 1
    for other in (
        replace(one, related=False),
        replace(one, input=None),
        replace(one, input=JobInput.read({"files": 3})),
    ):
        assert not len(sized_runs(problem_with(other)).rows)
    assert not len(sized_runs(problem_with(one, size=None)).rows)


def searched(problem: Problem) -> Study:
    clock = SimulatedClock()
    study = Study(problem, preset("ernest-sizes"), clock=clock)
    explore(study, TableExecutor(problem, Measurements(seconds_at(80.0)), clock), clock)
    return study


def test_the_first_run_is_the_best_configuration_at_the_new_size() -> None:
    first = searched(problem_with(*HISTORY)).observations[0]
    cost = seconds_at(80.0) * problem_with().price
    assert cost[first.row] <= 1.1 * cost.min()
    assert first.order.plan.why == "best prediction"


@pytest.mark.parametrize("problem", [problem_with(), problem_with(*HISTORY, size=None)], ids=["no history", "no size"])
def test_without_sizes_it_measures_this_job_and_says_so(problem: Problem) -> None:
    why = searched(problem).observations[0].order.plan.why
    assert why == "optimal design 1 of 4; no history with input sizes to learn from, so this job is measured"


def test_it_is_a_policy_that_reads_history() -> None:
    assert reads_history(preset("ernest-sizes"))
    assert compose(describe(preset("ernest-sizes"))) == preset("ernest-sizes")


def test_the_input_of_a_past_job_is_stored() -> None:
    assert PastJob.of_record(HISTORY[0].record()).input == HISTORY[0].input
    assert "input" not in replace(HISTORY[0], input=None).record()
