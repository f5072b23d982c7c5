"""Bagged trees as a surrogate: the contract, the rules of the papers, and the settings."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.functions import ConstrainedImprovement, Feasibility, Improvement
from lynceus.models.state import State
from lynceus.models.trees import Trees, kernel_threads
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.testing.job import SmallJob, small_job
from lynceus.testing.surrogates import check_surrogate
from lynceus.trial.outcome import End, Outcome, TrainingTarget

COARSE = Trees(min_gain=1e-6, min_variance=0.001, shared_randomness=True, inputs="parameters")
SETTINGS = {
    "defaults": Trees(),
    "log time": Trees(target="log time"),
    "coarse leaves": COARSE,
    "extra-trees": Trees(bag="whole", splits="random", spread="total", trees=16),
    "poisson": Trees(bag="poisson", spread="total", target="log time", min_leaf=2),
    "all trees at once": Trees(no_more_than_samples=False, attributes=1),
    "parameters only": Trees(inputs="parameters"),
}


def after(job: SmallJob, runs: int) -> State:
    return State.present(job.problem, job.finished(job.order_of_runs[:runs]))


@pytest.mark.parametrize("name", list(SETTINGS))
def test_every_setting_meets_the_contract(name: str) -> None:
    check_surrogate(SETTINGS[name])


def test_trees_grown_to_single_samples_reproduce_the_observations() -> None:
    """With everything in every bag and no spread, the prediction at an observed row is the observation."""
    job = small_job()
    here = after(job, 10)
    prediction = Trees(bag="whole")(here, 0)
    cost = job.problem.price[here.rows] * here.seconds
    assert prediction.mean[0, here.rows, 0] == pytest.approx(cost)
    assert prediction.std[0, here.rows, 0] == pytest.approx(np.zeros(10), abs=1e-12)
    log_prediction = Trees(bag="whole", target="log time")(here, 0)
    assert np.exp(log_prediction.mean[0, here.rows, 0]) == pytest.approx(here.seconds)


def test_means_stay_within_the_observed_range() -> None:
    job = small_job()
    here = after(job, 12)
    cost = job.problem.price[here.rows] * here.seconds
    mean = Trees()(here, 3).mean[0, :, 0]
    assert (mean >= cost.min() - 1e-12).all()
    assert (mean <= cost.max() + 1e-12).all()


def test_predicted_cost_includes_the_boot() -> None:
    """The model predicts the cost of a production run, whatever was charged for the test."""
    job = small_job(billing=Billing(boot_s=100.0, granularity_s=60.0, fee_usd=0.05))
    here = after(job, 1)
    row = int(here.rows[0])
    assert Trees()(here, 0).mean[0, row, 0] == pytest.approx(job.problem.cost(row, float(here.seconds[0])))


def test_as_many_trees_as_samples_until_there_are_enough() -> None:
    """A single tree has no spread."""
    job = small_job()
    prediction = Trees()(after(job, 1), 0)
    assert (prediction.std == 0).all()
    assert (Trees(no_more_than_samples=False)(after(job, 2), 0).std > 0).any()


def test_the_spread_is_the_sample_standard_deviation_over_trees() -> None:
    """Two observations, two trees: each tree predicts one of few values, so σ = |a − b|/√2 or 0."""
    job = small_job()
    here = after(job, 2)
    low, high = sorted((job.problem.price[here.rows] * here.seconds).tolist())
    seen = set()
    for seed in range(30):
        prediction = Trees()(here, seed)
        for mean, std in zip(prediction.mean[0, :, 0], prediction.std[0, :, 0], strict=True):
            halves = {low, high, (low + high) / 2}
            assert any(math.isclose(mean, value) for value in halves)
            spread = (high - low) / math.sqrt(2) if math.isclose(mean, (low + high) / 2) else 0.0
            assert math.isclose(std, spread, abs_tol=1e-12)
            seen.add(round(std, 9))
    assert len(seen) == 2


def test_seeds_and_steps_draw_their_own_bags_unless_randomness_is_shared() -> None:
    job = small_job()
    here = after(job, 8)
    later = replace(here, started=9)
    assert not np.array_equal(Trees()(here, 0).mean, Trees()(here, 1).mean)
    assert not np.array_equal(Trees()(here, 0).mean, Trees()(later, 0).mean)
    same = Trees(shared_randomness=True)
    assert np.array_equal(same(here, 0).mean, same(later, 0).mean)


def test_an_imagined_run_moves_the_prediction_towards_it() -> None:
    job = small_job()
    here = after(job, 8)
    row = job.order_of_runs[12]
    target = np.array([[[0.01], [5.0]]])
    children = here.after(np.array([row]), target, np.zeros((1, 2)), np.full((1, 2), np.nan))
    cheap, expensive = Trees(no_more_than_samples=False, trees=50)(children, 0).mean[:, row, 0]
    assert cheap < expensive
    assert cheap < float(Trees(no_more_than_samples=False, trees=50)(here, 0).mean[0, row, 0]) < expensive


def test_a_missing_metric_is_predicted_from_other_runs() -> None:
    job = small_job("accuracy >= 0.85")
    observations = list(job.finished(job.order_of_runs[:6]))
    observations[0] = replace(observations[0], target=TrainingTarget(observations[0].outcome.seconds))
    prediction = Trees()(State.present(job.problem, tuple(observations)), 0)
    assert np.isfinite(prediction.mean).all()
    reported = [seen.target.metrics["accuracy"] for seen in observations[1:] if seen.target]
    assert (
        min(reported) - 1e-9 <= prediction.mean[0, :, 1].min() <= prediction.mean[0, :, 1].max() <= max(reported) + 1e-9
    )


def test_a_metric_without_any_report_has_finite_predictions() -> None:
    job = small_job("memory <= 8")
    prediction = Trees()(after(job, 5), 0)
    assert np.isfinite(prediction.mean).all()
    assert np.isfinite(ConstrainedImprovement()(prediction, after(job, 5))).all()


def test_features_or_parameters() -> None:
    """A derived feature that orders machines by memory is an input of the one and not of the other."""
    memory = Mapped("memory", "vm", {"a": 32, "b": 4, "c": 30, "d": 8})
    space = Space.build([Categorical("vm", ("a", "b", "c", "d"))], derived=[memory], price=1.0)
    job = small_job()
    problem = replace(job.problem, space=space)
    seen = tuple(replace(job.observation(i, i), target=TrainingTarget(100.0 * (i + 1))) for i in (0, 1, 3))
    here = State.present(problem, seen)
    wide, narrow = Trees(bag="whole", attributes=1), Trees(bag="whole", attributes=1, inputs="parameters")
    at_c = {seed: (wide(here, seed).mean[0, 2, 0], narrow(here, seed).mean[0, 2, 0]) for seed in range(20)}
    assert len({narrow_mean for _, narrow_mean in at_c.values()}) == 1, "one input, one way to split"
    assert len({wide_mean for wide_mean, _ in at_c.values()}) > 1


def test_trees_need_an_observation() -> None:
    with pytest.raises(ValueError, match="put an initial design before the planner"):
        Trees()(after(small_job(), 0), 0)


def test_the_fast_path_returns_none_for_other_acquisition_functions() -> None:
    acquisition = ConstrainedImprovement()
    assert Trees().pick(after(small_job(), 5), acquisition, 0.99, 0) is not None
    assert Trees().pick(after(small_job(), 5), Improvement(), 0.99, 0) is None
    assert Trees().pick(after(small_job(), 5), Feasibility(), 0.99, 0) is None
    assert Trees().pick(after(small_job(objective="time"), 5), acquisition, 0.99, 0) is None
    assert Trees().pick(after(small_job(billing=Billing(boot_s=9.0, warm=("vm",))), 5), acquisition, 0.99, 0) is None
    unknown = after(small_job("runtime <= 1m"), 5)
    assert Trees(target="log time").pick(unknown, acquisition, 0.99, 0) is None
    assert Trees().pick(unknown, replace(acquisition, guess="ceiling"), 0.99, 0) is None


@pytest.mark.parametrize(("runs", "confidence"), list(itertools.product((1, 2, 9), (0.0, 0.5, 0.99))))
def test_the_fast_path_agrees_without_look_ahead(runs: int, confidence: float) -> None:
    from lynceus.policy.planners.lookahead import Lookahead

    for constraints in (("runtime <= 30m",), ("runtime <= 30m", "accuracy >= 0.88"), ("runtime <= 2m",)):
        here = after(small_job(*constraints, budget=Budget(usd=4.0)), runs)
        for trees in (Trees(), COARSE, Trees(target="log time")):
            acquisition = ConstrainedImprovement()
            fused = trees.pick(here, acquisition, confidence, 5)
            plain = Lookahead(acquisition, confidence=confidence)._pick_by_prediction(here, trees, 5)
            if fused is None:
                continue
            assert (fused.row[0] >= 0) == (plain.row[0] >= 0)
            if fused.row[0] >= 0:
                assert fused.value[0] == pytest.approx(plain.value[0], rel=1e-9, abs=1e-15)


def test_stopped_runs_train_with_their_censored_value() -> None:
    job = small_job()
    seen = job.observation(0, 4)
    stopped = replace(
        seen, outcome=Outcome(End.TIMEOUT, 10.0, 0.1), target=TrainingTarget(500.0, censored=True, bound_s=10.0)
    )
    here = State.present(job.problem, (stopped,))
    assert Trees()(here, 0).mean[0, 4, 0] == pytest.approx(500.0 * float(job.problem.price[4]))


def test_threads_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_THREADS", "3")
    assert kernel_threads() == 3
    monkeypatch.setenv("LYNCEUS_THREADS", "0")
    assert kernel_threads() >= 1
    monkeypatch.delenv("LYNCEUS_THREADS")
    assert kernel_threads() >= 1
