"""What runs of other jobs say about moving from one configuration to another (Scout)."""

from dataclasses import replace

import numpy as np
import pytest

from jobs_scale import scaling_job
from lynceus.errors import InputError
from lynceus.policy import Stopped, decide, preset
from lynceus.situation import Situation
from lynceus.surrogate.past_pairs import PastPairs, PastRuns

JOB = scaling_job()
Q = len(JOB.problem.space)


def resources(q: int = Q) -> np.ndarray:
    """Two resources of every configuration: a grid of cores, and another thing that does not matter."""
    rng = np.random.default_rng(3)
    return np.column_stack([np.log(2.0 ** (np.arange(q) % 4)), rng.normal(size=q)])


def past(jobs: int = 12, noise: float = 0.01) -> PastRuns:
    """Jobs that scale with cores as far as they report to be bound by processors."""
    rng = np.random.default_rng(0)
    job, had, seconds, metrics = [], [], [], []
    for name in range(jobs):
        busy = rng.uniform(0, 1)
        for cores in (0.0, 0.7, 1.4, 2.1):
            job.append(name)
            had.append([cores, rng.normal()])
            seconds.append(np.exp(rng.normal(5, 0.0) - busy * cores + noise * rng.normal()))
            metrics.append([np.expm1(3 * busy), rng.uniform(0, 5)])
    return PastRuns(np.array(job), np.array(had), np.array(seconds), np.array(metrics), ("cpu", "fan"), resources())


def seen(rows, busy: float | None):
    """The job at hand, with runs that report how busy processors were."""
    history = JOB.finished(rows)
    report = {} if busy is None else {"cpu": float(np.expm1(3 * busy)), "fan": 1.0}
    return Situation.present(
        JOB.problem, tuple(replace(one, outcome=replace(one.outcome, metrics=report)) for one in history)
    )


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.9])
def test_what_a_run_was_short_of_says_what_more_of_it_would_bring(busy):
    belief = PastPairs(past(), pull=0.01)(seen([0], busy), 0)
    start = np.log(JOB.measured.seconds[0])
    expected = start - busy * (resources()[:, 0] - resources()[0, 0])
    assert belief.mean[0, :, 0] == pytest.approx(expected, abs=0.15)


def test_a_run_that_was_made_is_believed_and_far_ones_are_doubted():
    belief = PastPairs(past())(seen([0, 5], 0.5), 0)
    assert belief.mean[0, [0, 5], 0] == pytest.approx(np.log(JOB.measured.seconds[[0, 5]]), abs=1e-4)
    assert belief.std[0, [0, 5], 0] == pytest.approx(0.0, abs=1e-4)
    distance = np.square(resources() - resources()[0]).sum(axis=1)
    alone = PastPairs(past())(seen([0], 0.5), 0).std[0, :, 0]
    assert np.corrcoef(alone, np.sqrt(distance))[0, 1] > 0.9


def test_noisier_pasts_leave_more_doubt():
    sure, unsure = (
        PastPairs(past(noise=noise), pull=0.01)(seen([0], 0.5), 0).std[0, :, 0].mean() for noise in (0.01, 0.5)
    )
    assert unsure > 2 * sure


def test_without_reports_a_job_is_taken_for_an_average_one():
    belief = PastPairs(past(jobs=60))(seen([0], None), 0)
    slope = np.polyfit(resources()[:, 0], belief.mean[0, :, 0], 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_imagined_runs_are_believed_like_real_ones():
    situation = seen([0, 5], 0.7)
    imagined = replace(
        situation,
        left=np.repeat(situation.left, 2),
        imagined_rows=np.array([[1], [2]]),
        imagined_told=np.array([[[5.0]], [[6.0]]]),
    )
    belief = PastPairs(past())(imagined, 0)
    assert belief.mean.shape == (2, Q, 1)
    assert (belief.mean[0, 1, 0], belief.mean[1, 2, 0]) == pytest.approx((5.0, 6.0), abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": np.ones(3)}, "runs came with 3 times"),
        ({"here": np.zeros((Q, 3))}, "runs have 2 resources and configurations 3"),
        ({"resources": np.full((48, 2), np.nan)}, "not above 0"),
        ({"job": np.zeros(48, dtype=int)}, "at least two other jobs"),
    ],
)
def test_a_past_that_does_not_fit_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(past(), **change)


def test_a_past_of_other_configurations_is_refused():
    with pytest.raises(InputError, match="5 configurations were described, the job has 12"):
        PastPairs(replace(past(), here=resources(5)))(seen([0], 0.5), 0)


def test_without_a_past_nothing_is_known_of_other_configurations_but_the_search_goes_on():
    policy = preset("scout")
    belief = PastPairs()(seen([0, 5], 0.5), 0)
    assert np.ptp(belief.mean[0, :, 0]) == 0.0
    assert belief.std[0, :, 0].min() >= 1.0
    order = decide(JOB.problem, policy, JOB.finished([0]), seed=0)
    assert not isinstance(order, Stopped)
    with pytest.raises(InputError, match="leave lookahead out"):
        preset("scout", lookahead=1)
