"""Ernest's model on times that follow its law, and as a part like any other."""

import numpy as np
import pytest

from jobs_scale import scaling_job
from lynceus.situation import Situation
from lynceus.surrogate.scale_out import ScaleOut, machine_types
from lynceus.testing.surrogates import check_surrogate


def test_it_keeps_the_promises_of_a_surrogate():
    check_surrogate(ScaleOut())


def test_it_finds_a_law_of_its_own_kind_again():
    job = scaling_job()
    rows = [row for row in range(len(job.problem.space)) if job.problem.space.point(row)["nodes"] in (1, 2, 8, 16)]
    belief = ScaleOut()(Situation.present(job.problem, job.finished(rows)), 0)
    assert np.exp(belief.mean[0, :, 0]) == pytest.approx(job.measured.seconds, rel=0.02)


def test_a_type_that_never_ran_is_wide():
    job = scaling_job()
    rows = [row for row in range(len(job.problem.space)) if job.problem.space.point(row)["vm"] == "small"]
    belief = ScaleOut()(Situation.present(job.problem, job.finished(rows[:3])), 0)
    group, _ = machine_types(job.problem.space, "nodes")
    tried = group == group[rows[0]]
    assert belief.std[0, ~tried, 0].min() >= 1.0 > belief.std[0, tried, 0].max()
