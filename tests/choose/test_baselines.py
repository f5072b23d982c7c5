"""Choosers of the baselines: Ernest's design, the lowest prediction, disjoint optimisation."""

import numpy as np
import pytest

from jobs_scale import scaling_job
from lynceus.choose import Uniform
from lynceus.choose.disjoint import Disjoint
from lynceus.choose.scale_out import LowestPredicted, OptimalDesign
from lynceus.situation import Situation
from lynceus.surrogate.scale_out import ScaleOut
from lynceus.testing.choosers import check_chooser


@pytest.mark.parametrize("chooser", [OptimalDesign(), LowestPredicted(), Disjoint(Uniform(), ("nodes",))], ids=repr)
def test_they_keep_the_promises_of_a_chooser(chooser):
    check_chooser(chooser, ScaleOut())


def run(chooser, surrogate=None, seed=0):
    """Rows that a chooser runs until it has nothing to say."""
    job, rows = scaling_job(), []
    while (plan := chooser(Situation.present(job.problem, job.finished(rows)), surrogate, seed)) is not None:
        rows.append(plan.row)
    return job, rows


def test_the_design_meets_every_type_with_different_counts():
    job, rows = run(OptimalDesign(count=3))
    points = [job.problem.space.point(row) for row in rows]
    for vm in ("small", "large"):
        counts = [point["nodes"] for point in points if point["vm"] == vm]
        assert len(set(counts)) == 3
    assert [point["vm"] for point in points] == ["small"] * 3 + ["large"] * 3


def test_after_the_design_the_lowest_prediction_is_the_optimum():
    job, rows = run(OptimalDesign(count=3))
    plan = LowestPredicted()(Situation.present(job.problem, job.finished(rows)), ScaleOut(), 0)
    assert plan is not None
    cost = job.measured.seconds * job.problem.price
    late = job.measured.seconds > job.problem.deadline_s
    best = int(np.argmin(np.where(late, np.inf, cost)))
    assert plan.row == best or best in rows


def test_disjoint_optimisation_goes_one_step_after_the_other():
    for seed in range(6):
        job, rows = run(Disjoint(Uniform(), ("nodes",)), seed=seed)
        space = job.problem.space
        first = {space.point(row)["vm"] for row in rows[:6]}
        assert len(first) == 1
        kept = [row for row in rows[:6] if job.measured.seconds[row] <= job.problem.deadline_s]
        best = min(kept, key=lambda row: job.measured.seconds[row] * job.problem.price[row])
        assert [space.point(row)["nodes"] for row in rows[6:]] == [space.point(best)["nodes"]]
