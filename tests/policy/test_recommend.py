"""The answer: measured before believed, sure enough where sureness was asked for."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.history import End, Outcome, Reason, Told
from lynceus.policy import BestPredicted, BestSeen, Policy, preset, recommend
from lynceus.policy.answer import confident
from lynceus.problem import Problem, Tariff
from lynceus.situation import Belief, Situation
from lynceus.testing import SmallJob, small_job


@dataclass(frozen=True)
class Fixed:
    """A model whose belief is given."""

    mean: tuple[tuple[float, ...], ...]
    """Per row: dollars, then metrics."""
    std: float = 0.05

    def __call__(self, situation: Situation, seed: int) -> Belief:
        mean = np.array(self.mean)[None]
        return Belief("cost", mean, np.full(mean.shape, self.std))


def feasible(job: SmallJob) -> list[int]:
    """Rows on time, cheapest first."""
    rows = np.flatnonzero(job.measured.seconds <= 1800).tolist()
    return sorted(rows, key=lambda row: job.problem.cost(row, float(job.measured.seconds[row])))


def costs(job: SmallJob, **changes: float) -> list[float]:
    values = [job.problem.cost(row, float(job.measured.seconds[row])) for row in range(24)]
    for row, value in changes.items():
        values[int(row[1:])] = value
    return values


def policy_of(surrogate: Fixed | None = None, answer: BestSeen | BestPredicted | None = None) -> Policy:
    return replace(preset("sweep"), surrogate=surrogate, answer=answer or BestSeen())


def test_the_cheapest_run_that_kept_every_limit() -> None:
    job = small_job("runtime <= 30m")
    best = feasible(job)[0]
    history = job.finished(job.order_of_runs)
    advice = recommend(job.problem, policy_of(), history, seed=0)
    assert advice is not None
    assert (advice.row, advice.measured, advice.trials, advice.stopped_early) == (best, True, 24, 0)
    assert advice.params == job.problem.space.point(best)
    assert advice.seconds == pytest.approx(float(job.measured.seconds[best]))
    assert advice.value == advice.cost_usd == pytest.approx(job.problem.cost(best, advice.seconds))
    assert math.isnan(advice.probability)
    assert advice.spent_usd == pytest.approx(sum(seen.outcome.charged_usd for seen in history))


def test_nothing_kept_the_limits() -> None:
    job = small_job("runtime <= 1m")
    assert recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0) is None
    assert recommend(job.problem, policy_of(), (), seed=0) is None


def test_stopped_and_failed_runs_are_no_answer() -> None:
    job = small_job()
    seen = job.observation(0, 3)
    stopped = replace(seen, outcome=Outcome(End.CAPPED, 1.0, 0.001), told=Told(1.0, censored=True, bound_s=1.0))
    failed = replace(seen, outcome=Outcome(End.FAILED, 1.0, 0.001, reason=Reason.OOM), told=None)
    assert recommend(job.problem, policy_of(), (stopped, failed), seed=0) is None
    advice = recommend(job.problem, policy_of(), (stopped, failed, job.observation(2, 5)), seed=0)
    assert advice is not None
    assert (advice.row, advice.stopped_early, advice.trials) == (5, 1, 3)


@pytest.mark.parametrize(("goal", "best"), [("time", np.argmin), ("maximize accuracy", np.argmax)])
def test_other_goals_in_their_own_unit(goal: str, best: object) -> None:
    job = small_job(goal=goal)
    advice = recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    values = job.measured.seconds if goal == "time" else job.measured.metrics["accuracy"]
    row = int(best(values))  # type: ignore[operator]
    assert advice is not None
    assert (advice.row, advice.value) == (row, pytest.approx(float(values[row])))


def test_only_answerable_rows_are_recommended() -> None:
    job = small_job("runtime <= 30m")
    first, second = feasible(job)[:2]
    problem = replace(job.problem, answerable=np.arange(24) != first)
    advice = recommend(problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    assert advice is not None
    assert advice.row == second


def test_a_production_run_boots() -> None:
    job = small_job(tariff=Tariff(boot_s=60.0, warm=("vm",)))
    seen = replace(job.observation(0, 4), outcome=replace(job.observation(0, 4).outcome, charged_usd=0.001))
    advice = recommend(job.problem, policy_of(), (seen,), seed=0)
    assert advice is not None
    assert advice.cost_usd == pytest.approx(job.problem.cost(4, advice.seconds))
    assert advice.spent_usd == 0.001


# Confidence ----------------------------------------------------------------------------------------------------------------


def doubtful(job: SmallJob, row: int) -> Fixed:
    """The truth, except that one row is believed to be at its deadline exactly: a chance of one half."""
    at_deadline = 1800.0 * float(job.problem.price[row])
    return Fixed(tuple((value,) for value in costs(job, **{f"r{row}": at_deadline})), std=1e-3)


def test_a_confident_limit_prefers_the_surer_row() -> None:
    job = small_job("runtime <= 30m @ 0.95")
    first, second = feasible(job)[:2]
    history = job.finished(job.order_of_runs)
    surrogate = doubtful(job, first)
    advice = recommend(job.problem, policy_of(surrogate), history, seed=0)
    assert advice is not None
    assert advice.row == second
    assert advice.probability > 0.95
    relaxed = recommend(small_job("runtime <= 30m @ 0.4").problem, policy_of(surrogate), history, seed=0)
    assert relaxed is not None
    assert relaxed.row == first
    assert relaxed.probability == pytest.approx(0.5, abs=1e-6)


def test_where_nothing_is_sure_enough_the_best_seen_is_still_the_best_advice() -> None:
    job = small_job("runtime <= 30m @ 0.999")
    first = feasible(job)[0]
    unsure = Fixed(tuple((1800.0 * float(price),) for price in job.problem.price), std=1e-3)
    advice = recommend(job.problem, policy_of(unsure), job.finished(job.order_of_runs), seed=0)
    assert advice is not None
    assert (advice.row, advice.probability) == (first, pytest.approx(0.5))


def test_without_a_model_a_confidence_cannot_be_tested() -> None:
    job = small_job("runtime <= 30m @ 0.95")
    advice = recommend(job.problem, policy_of(), job.finished(job.order_of_runs), seed=0)
    assert advice is not None
    assert advice.row == feasible(job)[0]


def test_the_confidence_of_a_second_metric_reads_the_second_metric() -> None:
    problem: Problem = small_job("accuracy >= 0.5", "memory <= 4 @ 0.9").problem
    mean = tuple((0.3, 0.9, 3.0 if row % 2 else 5.0) for row in range(24))
    belief = Fixed(mean, std=0.1)(Situation.present(problem, ()), 0)
    sure = confident(belief, Situation.present(problem, ()))
    assert sure.tolist() == [bool(row % 2) for row in range(24)]


# Predictions ---------------------------------------------------------------------------------------------------------------


def test_the_best_believed_row_may_never_have_run() -> None:
    job = small_job("runtime <= 30m")
    surrogate = Fixed(tuple((value,) for value in costs(job, r23=0.01)), std=1e-4)
    history = job.finished([row for row in job.order_of_runs if row != 23][:6])
    advice = recommend(job.problem, policy_of(surrogate, BestPredicted()), history, seed=0)
    assert advice is not None
    assert (advice.row, advice.measured) == (23, False)
    assert advice.value == pytest.approx(0.01)
    assert advice.seconds == pytest.approx(0.01 / float(job.problem.price[23]))
    assert advice.probability == pytest.approx(1.0)


def test_a_prediction_must_be_sure_and_answerable() -> None:
    job = small_job("runtime <= 30m")
    first, second = feasible(job)[:2]
    history = job.finished(job.order_of_runs[:6])
    doubted = doubtful(job, first)
    advice = recommend(job.problem, policy_of(doubted, BestPredicted(sure=0.99)), history, seed=0)
    assert advice is not None
    assert advice.row == second
    masked = replace(job.problem, answerable=np.arange(24) != second)
    other = recommend(masked, policy_of(doubted, BestPredicted(sure=0.99)), history, seed=0)
    assert other is not None
    assert other.row not in (first, second)
    never = Fixed(tuple((1e6,) for _ in range(24)), std=1.0)
    assert recommend(job.problem, policy_of(never, BestPredicted()), history, seed=0) is None


def test_a_prediction_needs_a_model_and_something_to_learn_from() -> None:
    job = small_job()
    assert recommend(job.problem, policy_of(None, BestPredicted()), job.finished([1]), seed=0) is None
    assert recommend(job.problem, policy_of(doubtful(job, 0), BestPredicted()), (), seed=0) is None


def test_the_best_predicted_metric_is_the_largest() -> None:
    job = small_job(goal="maximize accuracy")
    surrogate = Fixed(tuple((0.3, 0.99 if row == 11 else 0.9) for row in range(24)), std=0.01)
    advice = recommend(job.problem, policy_of(surrogate, BestPredicted(0.5)), job.finished([1, 2]), seed=0)
    assert advice is not None
    assert (advice.row, advice.value) == (11, pytest.approx(0.99))
