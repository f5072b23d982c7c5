"""The recommendation: measured or predicted, with the confidence that a constraint requires."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.policy.answer import BestPredicted, BestSeen, confident
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import recommend
from lynceus.problem.billing import Billing
from lynceus.problem.problem import Problem
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.outcome import End, FailureReason, Outcome, TrainingTarget


@dataclass(frozen=True)
class FixedModel:
    """A surrogate with a given prediction."""

    mean: tuple[tuple[float, ...], ...]
    """Per row: dollars, then metrics."""
    std: float = 0.05

    def __call__(self, state: State, seed: int) -> Prediction:
        mean = np.array(self.mean)[None]
        return Prediction("cost", mean, np.full(mean.shape, self.std))


def feasible(job: SmallJob) -> list[int]:
    """Rows that meet the deadline, cheapest first."""
    rows = np.flatnonzero(job.measured.seconds <= 1800).tolist()
    return sorted(rows, key=lambda row: job.problem.cost(row, float(job.measured.seconds[row])))


def costs(job: SmallJob, **changes: float) -> list[float]:
    values = [job.problem.cost(row, float(job.measured.seconds[row])) for row in range(24)]
    for row, value in changes.items():
        values[int(row[1:])] = value
    return values


def policy_of(surrogate: FixedModel | None = None, answer: BestSeen | BestPredicted | None = None) -> Policy:
    return replace(preset("sweep"), surrogate=surrogate, answer=answer or BestSeen())


def test_the_cheapest_feasible_run_is_recommended() -> None:
    job = small_job("runtime <= 30m")
    best = feasible(job)[0]
    observations = job.finished(job.order_of_runs)
    recommendation = recommend(job.problem, policy_of(), observations, seed=0)
    assert recommendation is not None
    assert (recommendation.row, recommendation.measured, recommendation.trials, recommendation.stopped_early) == (
        best,
        True,
        24,
        0,
    )
    assert recommendation.params == job.problem.space.point(best)
    assert recommendation.seconds == pytest.approx(float(job.measured.seconds[best]))
    assert (
        recommendation.value == recommendation.cost_usd == pytest.approx(job.problem.cost(best, recommendation.seconds))
    )
    assert math.isnan(recommendation.probability)
    assert recommendation.spent_usd == pytest.approx(sum(seen.outcome.charged_usd for seen in observations))


def test_no_recommendation_without_a_feasible_run() -> None:
    job = small_job("runtime <= 1m")
    assert recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0) is None
    assert recommend(job.problem, policy_of(), (), seed=0) is None


def test_timed_out_and_failed_runs_are_not_recommended() -> None:
    job = small_job()
    seen = job.observation(0, 3)
    stopped = replace(
        seen, outcome=Outcome(End.TIMEOUT, 1.0, 0.001), target=TrainingTarget(1.0, censored=True, bound_s=1.0)
    )
    failed = replace(seen, outcome=Outcome(End.FAILED, 1.0, 0.001, reason=FailureReason.OOM), target=None)
    assert recommend(job.problem, policy_of(), (stopped, failed), seed=0) is None
    recommendation = recommend(job.problem, policy_of(), (stopped, failed, job.observation(2, 5)), seed=0)
    assert recommendation is not None
    assert (recommendation.row, recommendation.stopped_early, recommendation.trials) == (5, 1, 3)


@pytest.mark.parametrize(("objective", "best"), [("time", np.argmin), ("maximize accuracy", np.argmax)])
def test_other_objectives_have_their_own_unit(objective: str, best: object) -> None:
    job = small_job(objective=objective)
    recommendation = recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    values = job.measured.seconds if objective == "time" else job.measured.metrics["accuracy"]
    row = int(best(values))  # type: ignore[operator]
    assert recommendation is not None
    assert (recommendation.row, recommendation.value) == (row, pytest.approx(float(values[row])))


def test_only_answerable_rows_are_recommended() -> None:
    job = small_job("runtime <= 30m")
    first, second = feasible(job)[:2]
    problem = replace(job.problem, answerable=np.arange(24) != first)
    recommendation = recommend(problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    assert recommendation is not None
    assert recommendation.row == second


def test_the_recommended_cost_includes_the_boot() -> None:
    job = small_job(billing=Billing(boot_s=60.0, warm=("vm",)))
    seen = replace(job.observation(0, 4), outcome=replace(job.observation(0, 4).outcome, charged_usd=0.001))
    recommendation = recommend(job.problem, policy_of(), (seen,), seed=0)
    assert recommendation is not None
    assert recommendation.cost_usd == pytest.approx(job.problem.cost(4, recommendation.seconds))
    assert recommendation.spent_usd == 0.001


def uncertain_at(job: SmallJob, row: int) -> FixedModel:
    """Predicts the true costs, except one row exactly at its deadline: probability 0.5."""
    at_deadline = 1800.0 * float(job.problem.price[row])
    return FixedModel(tuple((value,) for value in costs(job, **{f"r{row}": at_deadline})), std=1e-3)


def test_a_confidence_level_excludes_an_uncertain_row() -> None:
    job = small_job("runtime <= 30m @ 0.95")
    first, second = feasible(job)[:2]
    observations = job.finished(job.order_of_runs)
    surrogate = uncertain_at(job, first)
    recommendation = recommend(job.problem, policy_of(surrogate), observations, seed=0)
    assert recommendation is not None
    assert recommendation.row == second
    assert recommendation.probability > 0.95
    relaxed = recommend(small_job("runtime <= 30m @ 0.4").problem, policy_of(surrogate), observations, seed=0)
    assert relaxed is not None
    assert relaxed.row == first
    assert relaxed.probability == pytest.approx(0.5, abs=1e-6)


def test_the_best_run_is_recommended_when_no_row_is_confident_enough() -> None:
    job = small_job("runtime <= 30m @ 0.999")
    first = feasible(job)[0]
    uncertain = FixedModel(tuple((1800.0 * float(price),) for price in job.problem.price), std=1e-3)
    recommendation = recommend(job.problem, policy_of(uncertain), job.finished(job.order_of_runs), seed=0)
    assert recommendation is not None
    assert (recommendation.row, recommendation.probability) == (first, pytest.approx(0.5))


def test_confidence_is_ignored_without_a_model() -> None:
    job = small_job("runtime <= 30m @ 0.95")
    recommendation = recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    assert recommendation is not None
    assert recommendation.row == feasible(job)[0]


def test_the_confidence_of_each_constraint_uses_its_own_metric() -> None:
    problem: Problem = small_job("accuracy >= 0.5", "memory <= 4 @ 0.9").problem
    mean = tuple((0.3, 0.9, 3.0 if row % 2 else 5.0) for row in range(24))
    prediction = FixedModel(mean, std=0.1)(State.present(problem, ()), 0)
    mask = confident(prediction, problem)
    assert mask.tolist() == [bool(row % 2) for row in range(24)]


def test_the_best_predicted_row_may_be_unmeasured() -> None:
    job = small_job("runtime <= 30m")
    surrogate = FixedModel(tuple((value,) for value in costs(job, r23=0.01)), std=1e-4)
    observations = job.finished([row for row in job.order_of_runs if row != 23][:6])
    recommendation = recommend(job.problem, policy_of(surrogate, BestPredicted()), observations, seed=0)
    assert recommendation is not None
    assert (recommendation.row, recommendation.measured) == (23, False)
    assert recommendation.value == pytest.approx(0.01)
    assert recommendation.seconds == pytest.approx(0.01 / float(job.problem.price[23]))
    assert recommendation.probability == pytest.approx(1.0)


def test_a_predicted_row_must_be_confident_and_answerable() -> None:
    job = small_job("runtime <= 30m")
    first, second = feasible(job)[:2]
    observations = job.finished(job.order_of_runs[:6])
    surrogate = uncertain_at(job, first)
    recommendation = recommend(job.problem, policy_of(surrogate, BestPredicted(confidence=0.99)), observations, seed=0)
    assert recommendation is not None
    assert recommendation.row == second
    masked = replace(job.problem, answerable=np.arange(24) != second)
    other = recommend(masked, policy_of(surrogate, BestPredicted(confidence=0.99)), observations, seed=0)
    assert other is not None
    assert other.row not in (first, second)
    infeasible = FixedModel(tuple((1e6,) for _ in range(24)), std=1.0)
    assert recommend(job.problem, policy_of(infeasible, BestPredicted()), observations, seed=0) is None


def test_a_prediction_needs_a_model_and_observations() -> None:
    job = small_job()
    assert recommend(job.problem, policy_of(None, BestPredicted()), job.finished([1]), seed=0) is None
    assert recommend(job.problem, policy_of(uncertain_at(job, 0), BestPredicted()), (), seed=0) is None


def test_the_best_predicted_metric_is_the_largest() -> None:
    job = small_job(objective="maximize accuracy")
    surrogate = FixedModel(tuple((0.3, 0.99 if row == 11 else 0.9) for row in range(24)), std=0.01)
    recommendation = recommend(job.problem, policy_of(surrogate, BestPredicted(0.5)), job.finished([1, 2]), seed=0)
    assert recommendation is not None
    assert (recommendation.row, recommendation.value) == (11, pytest.approx(0.99))
