"""Ernest's model on times that follow its formula, and its contract as a surrogate."""

import numpy as np
import pytest

from lynceus.executors.table import Measurements
from lynceus.models.scale_out import ScaleOut, machine_types
from lynceus.models.state import State
from lynceus.policy.planners.ernest import LowestPredicted, OptimalDesign
from lynceus.problem.data_fraction import Fraction
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer, Ordinal
from lynceus.space.table import Space
from lynceus.testing.job import SmallJob
from lynceus.testing.surrogates import check_surrogate
from scale_out_job import scaling_job


def test_it_meets_the_contract_of_surrogates():
    check_surrogate(ScaleOut())


def test_it_recovers_times_of_its_own_formula():
    job = scaling_job()
    rows = [row for row in range(len(job.problem.space)) if job.problem.space.point(row)["nodes"] in (1, 2, 8, 16)]
    prediction = ScaleOut()(State.present(job.problem, job.finished(rows)), 0)
    assert np.exp(prediction.mean[0, :, 0]) == pytest.approx(job.measured.seconds, rel=0.02)


def test_a_machine_type_that_never_ran_has_a_large_std():
    job = scaling_job()
    rows = [row for row in range(len(job.problem.space)) if job.problem.space.point(row)["vm"] == "small"]
    prediction = ScaleOut()(State.present(job.problem, job.finished(rows[:3])), 0)
    group, _ = machine_types(job.problem.space, "nodes")
    tried = group == group[rows[0]]
    assert prediction.std[0, ~tried, 0].min() >= 1.0 > prediction.std[0, tried, 0].max()


def test_the_size_of_the_data_is_part_of_the_parallel_work():
    """Learnt on a tenth and a half of the data, the time on all data follows from the formula."""
    space = Space.build([Integer("nodes", 1, 8), Ordinal("share", (0.1, 0.5, 1.0))], price="nodes * 1.0")
    nodes, share = space.column("nodes").astype(float), space.column("share").astype(float)
    seconds = 12 + 900 * share / nodes + 3 * nodes
    problem = Fraction("share", "samples", "full").apply(Problem(space))
    job = SmallJob(problem, Measurements(seconds), tuple(range(len(space))))
    samples = [row for row in range(len(space)) if share[row] < 1 and nodes[row] in (1, 2, 4, 8)]
    prediction = ScaleOut()(State.present(problem, job.finished(samples)), 0)
    assert np.exp(prediction.mean[0, :, 0]) == pytest.approx(seconds, rel=0.02)
    group, basis = machine_types(space, "nodes", "share")
    assert len(set(group)) == 1
    assert basis[:, 1] == pytest.approx(share / nodes)


def test_ernest_trains_on_samples_and_runs_the_best_prediction_on_all_data():
    space = Space.build([Integer("nodes", 1, 8), Ordinal("share", (0.1, 0.5, 1.0))], price="nodes * 1.0")
    nodes, share = space.column("nodes").astype(float), space.column("share").astype(float)
    seconds = 12 + 900 * share / nodes + 3 * nodes
    problem = Fraction("share", "all", "full").apply(Problem(space))
    job = SmallJob(problem, Measurements(seconds), tuple(range(len(space))))
    design = OptimalDesign(count=4)
    rows: list[int] = []
    while (plan := design(State.present(problem, job.finished(rows)), None, 0)) is not None:
        rows.append(plan.row)
    assert len(rows) == 4
    assert share[rows].min() < 1, "samples tell more per dollar"
    chosen = LowestPredicted()(State.present(problem, job.finished(rows)), ScaleOut(), 0)
    assert chosen is not None
    assert share[chosen.row] == 1.0
