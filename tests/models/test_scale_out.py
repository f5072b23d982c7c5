"""Ernest's model on times that follow its formula, and its contract as a surrogate."""

import numpy as np
import pytest

from lynceus.models.scale_out import ScaleOut, machine_types
from lynceus.models.state import State
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
