"""Choosers of the baselines: Ernest's design, the lowest prediction, disjoint optimization."""

import numpy as np
import pytest

from lynceus.models.scale_out import ScaleOut
from lynceus.models.state import State
from lynceus.policy.planners.disjoint import Disjoint
from lynceus.policy.planners.ernest import LowestPredicted, OptimalDesign
from lynceus.policy.planners.simple import Uniform
from lynceus.testing.choosers import check_chooser
from scale_out_job import scaling_job


@pytest.mark.parametrize("chooser", [OptimalDesign(), LowestPredicted(), Disjoint(Uniform(), ("nodes",))], ids=repr)
def test_they_meet_the_contract_of_choosers(chooser):
    check_chooser(chooser, ScaleOut())


def run(chooser, surrogate=None, seed=0):
    """Rows that a chooser runs until it has no proposal."""
    job, rows = scaling_job(), []
    while (plan := chooser(State.present(job.problem, job.finished(rows)), surrogate, seed)) is not None:
        rows.append(plan.row)
    return job, rows


def test_the_design_runs_every_type_with_different_counts():
    job, rows = run(OptimalDesign(count=3))
    points = [job.problem.space.point(row) for row in rows]
    for vm in ("small", "large"):
        counts = [point["nodes"] for point in points if point["vm"] == vm]
        assert len(set(counts)) == 3
    assert [point["vm"] for point in points] == ["small"] * 3 + ["large"] * 3


def test_after_the_design_the_lowest_prediction_is_the_optimum():
    job, rows = run(OptimalDesign(count=3))
    plan = LowestPredicted()(State.present(job.problem, job.finished(rows)), ScaleOut(), 0)
    assert plan is not None
    cost = job.measured.seconds * job.problem.price
    late = job.measured.seconds > job.problem.deadline_s
    best = int(np.argmin(np.where(late, np.inf, cost)))
    assert plan.row == best or best in rows


def test_disjoint_optimization_has_two_steps():
    for seed in range(6):
        job, rows = run(Disjoint(Uniform(), ("nodes",)), seed=seed)
        space = job.problem.space
        first = {space.point(row)["vm"] for row in rows[:6]}
        assert len(first) == 1
        feasible = [row for row in rows[:6] if job.measured.seconds[row] <= job.problem.deadline_s]
        best = min(feasible, key=lambda row: job.measured.seconds[row] * job.problem.price[row])
        assert [space.point(row)["nodes"] for row in rows[6:]] == [space.point(best)["nodes"]]
