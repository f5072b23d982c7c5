"""Predictions of a move from runs of other jobs (Scout)."""

from dataclasses import replace

import numpy as np
import pytest

from deciding import decide
from lynceus.errors import InputError
from lynceus.models.past_pairs import PastPairs, PastRuns
from lynceus.models.state import State
from lynceus.policy.presets import preset
from lynceus.trial.stop import Stopped
from scale_out_job import scaling_job

JOB = scaling_job()
Q = len(JOB.problem.space)


def resources(q: int = Q) -> np.ndarray:
    """Two resources of every configuration: a grid of cores, and an irrelevant one."""
    rng = np.random.default_rng(3)
    return np.column_stack([np.log(2.0 ** (np.arange(q) % 4)), rng.normal(size=q)])


def past(jobs: int = 12, noise: float = 0.01) -> PastRuns:
    """Jobs that scale with cores in proportion to the processor load that they report."""
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
    """The state of this job, with runs that report the processor load."""
    observations = JOB.finished(rows)
    report = {} if busy is None else {"cpu": float(np.expm1(3 * busy)), "fan": 1.0}
    return State.present(
        JOB.problem, tuple(replace(one, outcome=replace(one.outcome, metrics=report)) for one in observations)
    )


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.9])
def test_the_limiting_resource_predicts_the_effect_of_more_of_it(busy):
    prediction = PastPairs(past(), pull=0.01)(seen([0], busy), 0)
    start = np.log(JOB.measured.seconds[0])
    expected = start - busy * (resources()[:, 0] - resources()[0, 0])
    assert prediction.mean[0, :, 0] == pytest.approx(expected, abs=0.15)


def test_the_std_is_zero_at_observed_rows_and_grows_with_distance():
    prediction = PastPairs(past())(seen([0, 5], 0.5), 0)
    assert prediction.mean[0, [0, 5], 0] == pytest.approx(np.log(JOB.measured.seconds[[0, 5]]), abs=1e-4)
    assert prediction.std[0, [0, 5], 0] == pytest.approx(0.0, abs=1e-4)
    distance = np.square(resources() - resources()[0]).sum(axis=1)
    alone = PastPairs(past())(seen([0], 0.5), 0).std[0, :, 0]
    assert np.corrcoef(alone, np.sqrt(distance))[0, 1] > 0.9


def test_a_noisier_past_gives_a_larger_std():
    small, large = (
        PastPairs(past(noise=noise), pull=0.01)(seen([0], 0.5), 0).std[0, :, 0].mean() for noise in (0.01, 0.5)
    )
    assert large > 2 * small


def test_a_job_without_reports_is_predicted_as_an_average_one():
    prediction = PastPairs(past(jobs=60))(seen([0], None), 0)
    slope = np.polyfit(resources()[:, 0], prediction.mean[0, :, 0], 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_imagined_runs_count_like_real_ones():
    state = seen([0, 5], 0.7)
    imagined = replace(
        state,
        left=np.repeat(state.left, 2),
        imagined_rows=np.array([[1], [2]]),
        imagined_targets=np.array([[[5.0]], [[6.0]]]),
    )
    prediction = PastPairs(past())(imagined, 0)
    assert prediction.mean.shape == (2, Q, 1)
    assert (prediction.mean[0, 1, 0], prediction.mean[1, 2, 0]) == pytest.approx((5.0, 6.0), abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": np.ones(3)}, "got 48 runs with 3 times"),
        ({"here": np.zeros((Q, 3))}, "runs have 2 resources and configurations 3"),
        ({"resources": np.full((48, 2), np.nan)}, "not above 0"),
        ({"job": np.zeros(48, dtype=int)}, "at least two other jobs"),
    ],
)
def test_an_inconsistent_past_is_an_error(change, message):
    with pytest.raises(InputError, match=message):
        replace(past(), **change)


def test_a_past_of_other_configurations_is_an_error():
    with pytest.raises(InputError, match="5 configurations are described, but the job has 12"):
        PastPairs(replace(past(), here=resources(5)))(seen([0], 0.5), 0)


def test_without_a_past_all_rows_are_predicted_alike_and_the_search_continues():
    policy = preset("scout")
    prediction = PastPairs()(seen([0, 5], 0.5), 0)
    assert np.ptp(prediction.mean[0, :, 0]) == 0.0
    assert prediction.std[0, :, 0].min() >= 1.0
    order = decide(JOB.problem, policy, JOB.finished([0]), seed=0)
    assert not isinstance(order, Stopped)
    with pytest.raises(InputError, match="leave lookahead out"):
        preset("scout", lookahead=1)
