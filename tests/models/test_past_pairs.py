"""Predictions of a move from runs of other jobs (Scout)."""

from dataclasses import replace

import numpy as np
import pytest

from deciding import decide
from lynceus.errors import InputError
from lynceus.models.past_pairs import PastPairs
from lynceus.policy.presets import preset
from lynceus.trial.stop import Stopped
from past_jobs import JOB, Q, past, resources, seen


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
