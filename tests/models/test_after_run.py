"""One more run as a rank-one update, against the model that has really seen it."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.acquisition.entropy_search import ConstrainedEntropySearch, ConstrainedIncumbent
from lynceus.models.after_run import ImaginedRuns
from lynceus.models.fabolas import Fabolas, FractionJointPrediction
from lynceus.models.gaussian.prior import Settings
from lynceus.models.state import State
from lynceus.problem.data_fraction import Fraction, row_shares
from shares import small_share_job

COUNT = 20_000


@pytest.fixture(scope="module")
def known() -> tuple[State, FractionJointPrediction]:
    """One hyper-parameter vector, so that nothing but the run changes."""
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    samples = np.flatnonzero(row_shares(problem) < 1)[:12].tolist()
    state = State.present(problem, job.finished(samples))
    model = Fabolas(settings=Settings(kept=1), care=1)
    return state, model.predict_jointly(state, 0)


@pytest.mark.parametrize("z", [-1.0, 0.0, 1.5])
def test_it_is_the_prediction_after_that_observation(known: tuple[State, FractionJointPrediction], z: float) -> None:
    state, joint = known
    row = int(np.flatnonzero(state.open)[3])
    imagined = ImaginedRuns.of(joint, np.array([row]), COUNT).after(0, {0: z, 1: z})
    for index in (0, 1):
        model = joint.targets[index].model
        assert model is not None
        mean, std = model.moments()
        y = mean[row] + z * np.sqrt(std[row] ** 2 + model.noise(np.array([row]))[0])
        first, second = model.after(np.array([[row]]), np.array([[y]]), joint.answers)
        updated = imagined.updated[index]
        np.testing.assert_allclose(updated.draws.mean(axis=0), first[0], atol=4 * second[0].max() / np.sqrt(COUNT))
        np.testing.assert_allclose(updated.draws.std(axis=0), second[0], rtol=0.04, atol=1e-3)
        variance = (updated.measured - updated.noise)[joint.answers]
        np.testing.assert_allclose(np.diagonal(updated.covariance[joint.answers]), np.square(second[0]), rtol=1e-6)
        np.testing.assert_allclose(variance, np.square(second[0]), rtol=1e-6)


def test_a_run_tells_nothing_new_a_second_time(known: tuple[State, FractionJointPrediction]) -> None:
    state, joint = known
    row = int(np.flatnonzero(state.open & (row_shares(state.problem) < 1))[0])
    utility = ConstrainedEntropySearch(1024)
    before = utility(joint, state, np.array([row]))
    after = utility(ImaginedRuns.of(joint, np.array([row]), 1024).after(0, {}), state, np.array([row]))
    assert after[0] < before[0]


def test_a_utility_that_imagines_runs_itself_is_refused(known: tuple[State, FractionJointPrediction]) -> None:
    state, joint = known
    rows = np.flatnonzero(state.open)[:2]
    imagined = ImaginedRuns.of(joint, rows, 64).after(1, {0: 1.0})
    with pytest.raises(ValueError, match="do not imagine runs themselves"):
        ConstrainedIncumbent()(imagined, state, rows)
    with pytest.raises(ValueError, match="only the prepared draws"):
        imagined.draws(joint.answers, 65)


def test_times_may_be_modelled_in_seconds() -> None:
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    samples = np.flatnonzero(row_shares(problem) < 1)
    state = State.present(problem, job.finished(samples.tolist()))
    measured = np.log(job.measured.seconds)
    for model in (Fabolas(care=1), Fabolas(time="seconds", care=1)):
        prediction = model(state, 0)
        assert np.isfinite(prediction.mean).all()
        assert (prediction.std > 0).all()
        error = np.abs(prediction.mean[0, samples, 0] - measured[samples])
        assert np.median(error) < 0.5
        joint = model.predict_jointly(state, 0)
        ceiling = problem.ceiling_s[joint.answers]
        drawn = joint.target_draws(0, joint.answers, 256)
        limit = ceiling if model.time == "seconds" else np.log(ceiling)
        np.testing.assert_array_equal(joint.meets(0, drawn), drawn <= limit)
