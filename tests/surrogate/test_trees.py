"""Bagged trees as a surrogate: the contract, the papers' rules, and the settings."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.gains import ConstrainedImprovement, Feasibility, Improvement
from lynceus.history import End, Outcome, Told
from lynceus.policy.presets import REFERENCE_TREES
from lynceus.problem import Budget, Tariff
from lynceus.situation import Situation
from lynceus.space import Categorical, Mapped, Space
from lynceus.surrogate.trees import Trees, kernel_threads
from lynceus.testing import SmallJob, check_surrogate, small_job

SETTINGS = {
    "the papers'": Trees(),
    "log time": Trees(target="log time"),
    "the published program's": REFERENCE_TREES,
    "extra-trees": Trees(bag="whole", splits="random", spread="total", trees=16),
    "poisson": Trees(bag="poisson", spread="total", target="log time", min_leaf=2),
    "all trees at once": Trees(no_more_than_samples=False, attributes=1),
    "parameters only": Trees(inputs="parameters"),
}


def after(job: SmallJob, runs: int) -> Situation:
    return Situation.present(job.problem, job.finished(job.order_of_runs[:runs]))


@pytest.mark.parametrize("name", list(SETTINGS))
def test_every_setting_keeps_the_contract(name: str) -> None:
    check_surrogate(SETTINGS[name])


def test_trees_grown_to_single_samples_repeat_what_they_saw() -> None:
    """With everything in every bag and no spread, the prediction at an observed row is the observation."""
    job = small_job()
    here = after(job, 10)
    belief = Trees(bag="whole")(here, 0)
    cost = job.problem.price[here.rows] * here.seconds
    assert belief.mean[0, here.rows, 0] == pytest.approx(cost)
    assert belief.std[0, here.rows, 0] == pytest.approx(np.zeros(10), abs=1e-12)
    log_belief = Trees(bag="whole", target="log time")(here, 0)
    assert np.exp(log_belief.mean[0, here.rows, 0]) == pytest.approx(here.seconds)


def test_means_stay_between_what_was_seen() -> None:
    job = small_job()
    here = after(job, 12)
    cost = job.problem.price[here.rows] * here.seconds
    mean = Trees()(here, 3).mean[0, :, 0]
    assert (mean >= cost.min() - 1e-12).all()
    assert (mean <= cost.max() + 1e-12).all()


def test_cost_is_booted_cost() -> None:
    """The model speaks of what a production run is billed, whatever was charged for the test."""
    job = small_job(tariff=Tariff(boot_s=100.0, granularity_s=60.0, fee_usd=0.05))
    here = after(job, 1)
    row = int(here.rows[0])
    assert Trees()(here, 0).mean[0, row, 0] == pytest.approx(job.problem.cost(row, float(here.seconds[0])))


def test_as_many_trees_as_samples_until_there_are_enough() -> None:
    """One tree has no spread; the published program's rule then says that it knows nothing (σ = 10 μ)."""
    job = small_job()
    belief = Trees()(after(job, 1), 0)
    assert (belief.std == 0).all()
    unsure = replace(REFERENCE_TREES, zero_spread=10.0)(after(job, 1), 0)
    assert unsure.std == pytest.approx(10.0 * unsure.mean)
    assert (Trees(no_more_than_samples=False)(after(job, 2), 0).std > 0).any()


def test_the_spread_is_the_sample_standard_deviation_over_trees() -> None:
    """Two observations, two trees: each tree says one of few values, so σ = |a − b|/√2 or 0."""
    job = small_job()
    here = after(job, 2)
    low, high = sorted((job.problem.price[here.rows] * here.seconds).tolist())
    seen = set()
    for seed in range(30):
        belief = Trees()(here, seed)
        for mean, std in zip(belief.mean[0, :, 0], belief.std[0, :, 0], strict=True):
            halves = {low, high, (low + high) / 2}
            assert any(math.isclose(mean, value) for value in halves)
            spread = (high - low) / math.sqrt(2) if math.isclose(mean, (low + high) / 2) else 0.0
            assert math.isclose(std, spread, abs_tol=1e-12)
            seen.add(round(std, 9))
    assert len(seen) == 2


def test_seeds_and_steps_have_their_own_luck_unless_told_otherwise() -> None:
    job = small_job()
    here = after(job, 8)
    later = replace(here, started=9)
    assert not np.array_equal(Trees()(here, 0).mean, Trees()(here, 1).mean)
    assert not np.array_equal(Trees()(here, 0).mean, Trees()(later, 0).mean)
    same = Trees(same_luck=True)
    assert np.array_equal(same(here, 0).mean, same(later, 0).mean)


def test_an_imagined_run_pulls_the_belief_towards_it() -> None:
    job = small_job()
    here = after(job, 8)
    row = job.order_of_runs[12]
    told = np.array([[[0.01], [5.0]]])
    children = here.after(np.array([row]), told, np.zeros((1, 2)), np.full((1, 2), np.nan))
    cheap, dear = Trees(no_more_than_samples=False, trees=50)(children, 0).mean[:, row, 0]
    assert cheap < dear
    assert cheap < float(Trees(no_more_than_samples=False, trees=50)(here, 0).mean[0, row, 0]) < dear


def test_a_metric_that_was_not_reported_is_learnt_from_those_that_were() -> None:
    job = small_job("accuracy >= 0.85")
    history = list(job.finished(job.order_of_runs[:6]))
    history[0] = replace(history[0], told=Told(history[0].outcome.seconds))
    belief = Trees()(Situation.present(job.problem, tuple(history)), 0)
    assert np.isfinite(belief.mean).all()
    reported = [seen.told.metrics["accuracy"] for seen in history[1:] if seen.told]
    assert min(reported) - 1e-9 <= belief.mean[0, :, 1].min() <= belief.mean[0, :, 1].max() <= max(reported) + 1e-9


def test_a_metric_that_nobody_reported_stays_a_number() -> None:
    job = small_job("memory <= 8")
    belief = Trees()(after(job, 5), 0)
    assert np.isfinite(belief.mean).all()
    assert np.isfinite(ConstrainedImprovement()(belief, after(job, 5))).all()


def test_features_or_parameters() -> None:
    """A derived feature that orders machines by memory is an input of the one and not of the other."""
    memory = Mapped("memory", "vm", {"a": 32, "b": 4, "c": 30, "d": 8})
    space = Space.build([Categorical("vm", ("a", "b", "c", "d"))], derived=[memory], price=1.0)
    job = small_job()
    problem = replace(job.problem, space=space)
    seen = tuple(replace(job.observation(i, i), told=Told(100.0 * (i + 1))) for i in (0, 1, 3))
    here = Situation.present(problem, seen)
    wide, narrow = Trees(bag="whole", attributes=1), Trees(bag="whole", attributes=1, inputs="parameters")
    at_c = {seed: (wide(here, seed).mean[0, 2, 0], narrow(here, seed).mean[0, 2, 0]) for seed in range(20)}
    assert len({narrow_mean for _, narrow_mean in at_c.values()}) == 1, "one input, one way to split"
    assert len({wide_mean for wide_mean, _ in at_c.values()}) > 1


def test_trees_need_something_to_learn_from() -> None:
    with pytest.raises(ValueError, match="put an initial design before the planner"):
        Trees()(after(small_job(), 0), 0)


def test_the_fast_path_refuses_what_it_cannot_do() -> None:
    gain = ConstrainedImprovement()
    assert Trees().pick(after(small_job(), 5), gain, 0.99, 0) is not None
    assert Trees().pick(after(small_job(), 5), Improvement(), 0.99, 0) is None
    assert Trees().pick(after(small_job(), 5), Feasibility(), 0.99, 0) is None
    assert Trees().pick(after(small_job(goal="time"), 5), gain, 0.99, 0) is None
    assert Trees().pick(after(small_job(tariff=Tariff(boot_s=9.0, warm=("vm",))), 5), gain, 0.99, 0) is None
    unknown = after(small_job("runtime <= 1m"), 5)
    assert Trees(target="log time").pick(unknown, gain, 0.99, 0) is None
    assert Trees().pick(unknown, replace(gain, guess="ceiling"), 0.99, 0) is None


@pytest.mark.parametrize(("runs", "sure"), list(itertools.product((1, 2, 9), (0.0, 0.5, 0.99))))
def test_the_fast_path_agrees_without_look_ahead(runs: int, sure: float) -> None:
    from lynceus.choose import Rollout

    for limits in (("runtime <= 30m",), ("runtime <= 30m", "accuracy >= 0.88"), ("runtime <= 2m",)):
        here = after(small_job(*limits, budget=Budget(usd=4.0)), runs)
        for trees in (Trees(), REFERENCE_TREES, Trees(target="log time")):
            gain = ConstrainedImprovement(guess="root sigma" if trees is REFERENCE_TREES else "sigma")
            fused = trees.pick(here, gain, sure, 5)
            plain = Rollout(gain, sure=sure)._pick_by_belief(here, trees, 5)
            if fused is None:
                continue
            assert (fused.row[0] >= 0) == (plain.row[0] >= 0)
            if fused.row[0] >= 0:
                assert fused.gain[0] == pytest.approx(plain.gain[0], rel=1e-9, abs=1e-15)


def test_stopped_runs_are_told_as_they_were_filled() -> None:
    job = small_job()
    seen = job.observation(0, 4)
    stopped = replace(seen, outcome=Outcome(End.CAPPED, 10.0, 0.1), told=Told(500.0, censored=True, bound_s=10.0))
    here = Situation.present(job.problem, (stopped,))
    assert Trees()(here, 0).mean[0, 4, 0] == pytest.approx(500.0 * float(job.problem.price[4]))


def test_threads_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_THREADS", "3")
    assert kernel_threads() == 3
    monkeypatch.setenv("LYNCEUS_THREADS", "0")
    assert kernel_threads() >= 1
    monkeypatch.delenv("LYNCEUS_THREADS")
    assert kernel_threads() >= 1
