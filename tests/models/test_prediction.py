"""Predictions: charges, feasibility, the objective, and the test against the budget."""

import math

import numpy as np
import pytest

from lynceus.models.prediction import Prediction, expected_charge, run_distribution
from lynceus.models.state import State
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.testing.job import SmallJob, small_job


@pytest.mark.parametrize("cap", [None, 700.0, 2000.0])
@pytest.mark.parametrize("billing", [Billing(), Billing(minimum_s=900.0, boot_s=60.0, fee_usd=0.01)])
def test_the_expected_charge_of_log_time_is_monte_carlo(billing: Billing, cap: float | None) -> None:
    job = small_job(billing=billing)
    mean, std, price = 6.5, 0.6, float(job.problem.price[5])
    draws = np.exp(np.random.default_rng(1).normal(mean, std, 2_000_000))
    charges = billing.charges(np.minimum(draws, math.inf if cap is None else cap), np.array(price))
    run = run_distribution("log time", np.array(mean), np.array(std))
    timeouts_s = None if cap is None else np.array(cap)
    usd = float(expected_charge(job.problem, run, "log time", np.array(5), timeouts_s))
    assert usd == pytest.approx(float(charges.mean()), rel=4e-3)


def test_the_expected_charge_of_a_stopped_cost_is_monte_carlo() -> None:
    job = small_job()
    draws = np.random.default_rng(2).normal(0.3, 0.1, 2_000_000)
    run = run_distribution("cost", np.array(0.3), np.array(0.1))
    timeout_s = np.array(0.32 / float(job.problem.price[5]))
    usd = float(expected_charge(job.problem, run, "cost", np.array(5), timeout_s))
    assert usd == pytest.approx(float(np.minimum(draws, 0.32).mean()), rel=1e-3)


def test_a_charge_is_never_negative() -> None:
    job = small_job(billing=Billing(boot_s=600.0, warm=("vm",)))
    here = State.present(job.problem, job.finished([0]))
    shape = (1, 24, 1)
    prediction = Prediction("cost", np.full(shape, -1.0), np.full(shape, 0.1))
    assert (prediction.charge(here) == 0).all()


def predict(job: SmallJob, form: str = "cost") -> Prediction:
    rng = np.random.default_rng(3)
    m = 1 + len(job.problem.metrics)
    mean = rng.uniform(0.1, 0.6, (2, 24, m)) if form == "cost" else rng.uniform(5.0, 8.0, (2, 24, m))
    return Prediction(form, mean, rng.uniform(0.01, 0.2, (2, 24, m)))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["cost", "log time"])
def test_the_probability_of_feasibility_is_monte_carlo(form: str) -> None:
    job = small_job("runtime <= 30m", "cost <= $0.4", "accuracy >= 0.3", "memory <= 0.5")
    prediction = predict(job, form)
    rng = np.random.default_rng(4)
    for b, row in [(0, 3), (1, 17)]:
        draws = rng.normal(prediction.mean[b, row], prediction.std[b, row], (400_000, 3))
        price = float(job.problem.price[row])
        seconds = draws[:, 0] / price if form == "cost" else np.exp(draws[:, 0])
        feasible = (seconds <= 1800) & (seconds * price <= 0.4) & (draws[:, 1] >= 0.3) & (draws[:, 2] <= 0.5)
        assert prediction.feasible(job.problem)[b, row] == pytest.approx(feasible.mean(), abs=5e-3)


def test_each_constraint_uses_its_own_target() -> None:
    """The constraint on the second metric must use the prediction of the second metric."""
    job = small_job("accuracy >= 0.3", "memory <= 0.5", "runtime <= 30m")
    prediction = predict(job)
    accuracy, memory, runtime = job.problem.constraints
    product = (
        prediction.meets(accuracy, job.problem)
        * prediction.meets(memory, job.problem)
        * prediction.meets(runtime, job.problem)
    )
    assert product == pytest.approx(prediction.feasible(job.problem))
    assert prediction.meets(memory, job.problem) == pytest.approx(np.asarray(prediction.metric(1).cdf(0.5)))


def test_affordable_is_the_test_of_the_papers() -> None:
    """μ + 2.326 σ ≤ B."""
    job = small_job(budget=Budget(usd=0.7))
    prediction = predict(job)
    here = State.present(job.problem, ())
    wanted = prediction.mean[:1, :, 0] + 2.3263478740408408 * prediction.std[:1, :, 0] <= 0.7
    one = Prediction("cost", prediction.mean[:1], prediction.std[:1])
    assert np.array_equal(one.affordable(here, 0.99), wanted)
    assert 0 < wanted.sum() < 24
    assert one.affordable(State.present(small_job().problem, ()), 0.99).all()


def test_arrays_of_different_shapes_are_an_error() -> None:
    with pytest.raises(ValueError, match="two arrays"):
        Prediction("cost", np.zeros((1, 2, 1)), np.zeros((1, 3, 1)))
    with pytest.raises(ValueError, match="two arrays"):
        Prediction("cost", np.zeros((2, 1)), np.zeros((2, 1)))


@pytest.mark.parametrize("form", ["cost", "log time"])
@pytest.mark.parametrize("objective", ["cost", "time", "maximize accuracy", "minimize accuracy"])
def test_the_objective_is_an_expectation_in_its_own_unit(form: str, objective: str) -> None:
    job = small_job("accuracy >= 0.1", objective=objective, billing=Billing(boot_s=30.0))
    prediction, problem = predict(job, form), job.problem
    run = prediction.run().expectation()
    expected = {
        "cost": run if form == "cost" else problem.billing.charges(run, problem.price),
        "time": run / problem.price - 30.0 if form == "cost" else run,
        "maximize accuracy": -prediction.mean[:, :, 1],
        "minimize accuracy": prediction.mean[:, :, 1],
    }[objective]
    assert prediction.objective(problem) == pytest.approx(expected)
    seconds = run / problem.price - 30.0 if form == "cost" else run
    assert prediction.seconds(problem) == pytest.approx(np.maximum(seconds, 0.0))


@pytest.mark.parametrize("form", ["cost", "log time"])
@pytest.mark.parametrize("objective", ["cost", "time", "maximize accuracy"])
def test_a_prediction_for_some_rows_agrees_with_one_for_all(form: str, objective: str) -> None:
    job = small_job("runtime <= 30m", "cost <= $0.4", "accuracy >= 0.3", objective=objective)
    whole, rows = predict(job, form), np.array([3, 17, 5])
    some = Prediction(whole.form, whole.mean[:, rows], whole.std[:, rows], rows)
    assert np.array_equal(some.objective(job.problem), whole.objective(job.problem)[:, rows])
    assert np.array_equal(some.feasible(job.problem), whole.feasible(job.problem)[:, rows])
    assert np.array_equal(some.seconds(job.problem), whole.seconds(job.problem)[:, rows])
