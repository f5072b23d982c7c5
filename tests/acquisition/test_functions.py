"""Acquisition functions against Monte Carlo, for every objective and form of prediction."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.functions import ConstrainedImprovement, Feasibility, Improvement, guessed_best
from lynceus.models.interfaces import ConstrainedAcquisition
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.problem.billing import Billing
from lynceus.space.column import FloatArray
from lynceus.testing.job import SmallJob, small_job

DRAWS = 400_000


def predicted(job: SmallJob, form: str) -> Prediction:
    rng = np.random.default_rng(8)
    shape = (1, 24, 1 + len(job.problem.metrics))
    mean, std = rng.uniform(0.7, 1.0, shape), rng.uniform(0.02, 0.1, shape)
    if form == "cost":
        mean[:, :, 0], std[:, :, 0] = rng.uniform(0.2, 0.6, shape[:2]), rng.uniform(0.05, 0.2, shape[:2])
    else:
        mean[:, :, 0], std[:, :, 0] = rng.uniform(6.5, 8.0, shape[:2]), rng.uniform(0.1, 0.6, shape[:2])
    return Prediction(form, mean, std)  # type: ignore[arg-type]


def state(job: SmallJob, best: float = math.nan) -> State:
    return replace(State.present(job.problem, job.finished(job.order_of_runs[:5])), best=np.array([best]))


def drawn(job: SmallJob, prediction: Prediction, row: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds, dollars and metrics of many imagined runs of a row; a cost is booted and has no rounding here."""
    rng = np.random.default_rng(row)
    draws = rng.normal(prediction.mean[0, row], prediction.std[0, row], (DRAWS, prediction.mean.shape[2]))
    billing, price = job.problem.billing, float(job.problem.price[row])
    if prediction.form == "cost":
        usd = draws[:, 0]
        seconds = (usd - billing.fee_usd) / price - billing.boot_s
    else:
        seconds = np.exp(draws[:, 0])
        usd = billing.charges(seconds, np.array(price))
    return seconds, usd, draws[:, 1:]


def close(value: float, samples: FloatArray) -> bool:
    return abs(value - float(samples.mean())) <= 5 * float(samples.std()) / math.sqrt(len(samples)) + 1e-12


ROWS = (0, 7, 13, 22)
BOOT = Billing(boot_s=60.0, fee_usd=0.01)


@pytest.mark.parametrize("billing", [Billing(), BOOT])
def test_the_exact_form_is_monte_carlo(billing: Billing) -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85", billing=billing)
    for form in ("cost", "log time"):
        prediction, best = predicted(job, form), 0.45
        gain = ConstrainedImprovement(exact=True)(prediction, state(job, best))[0]
        for row in ROWS:
            seconds, usd, metrics = drawn(job, prediction, row)
            samples = np.maximum(best - usd, 0.0) * (seconds <= 2400.0) * (metrics[:, 0] >= 0.85)
            assert close(gain[row], samples), (form, row)


def test_the_papers_form_is_the_product() -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85")
    prediction, best = predicted(job, "cost"), 0.45
    gain = ConstrainedImprovement()(prediction, state(job, best))[0]
    for row in ROWS:
        seconds, usd, metrics = drawn(job, prediction, row)
        product = np.maximum(best - usd, 0.0).mean() * (seconds <= 2400.0).mean() * (metrics[:, 0] >= 0.85).mean()
        assert gain[row] == pytest.approx(product, rel=0.02, abs=1e-5)


def test_without_constraints_both_forms_are_plain_improvement() -> None:
    job = small_job()
    prediction, here = predicted(job, "cost"), state(job, 0.45)
    plain = Improvement()(prediction, here)
    assert ConstrainedImprovement()(prediction, here) == pytest.approx(plain)
    assert ConstrainedImprovement(exact=True)(prediction, here) == pytest.approx(plain)
    constrained = state(small_job("runtime <= 10m", "accuracy >= 0.95"), 0.45)
    assert Improvement()(predicted(small_job("accuracy >= 0.95"), "cost"), constrained) == pytest.approx(
        Improvement()(predicted(small_job("accuracy >= 0.95"), "cost"), state(small_job("accuracy >= 0.95"), 0.45))
    )


@pytest.mark.parametrize("form", ["cost", "log time"])
@pytest.mark.parametrize("billing", [Billing(), BOOT])
def test_the_objective_time(form: str, billing: Billing) -> None:
    job = small_job("runtime <= 40m", objective="time", billing=billing)
    prediction, best = predicted(job, form), 1500.0
    gain = ConstrainedImprovement(exact=True)(prediction, state(job, best))[0]
    for row in ROWS:
        seconds, _, _ = drawn(job, prediction, row)
        assert close(gain[row], np.maximum(best - seconds, 0.0) * (seconds <= 2400.0))


@pytest.mark.parametrize(("objective", "sign"), [("maximize accuracy", -1.0), ("minimize accuracy", 1.0)])
def test_a_metric_as_objective(objective: str, sign: float) -> None:
    job = small_job("runtime <= 40m", objective=objective)
    prediction = predicted(job, "log time")
    best = sign * 0.85
    gain = ConstrainedImprovement()(prediction, state(job, best))[0]
    for row in ROWS:
        seconds, _, metrics = drawn(job, prediction, row)
        improvement = np.maximum(best - sign * metrics[:, 0], 0.0)
        assert gain[row] == pytest.approx(improvement.mean() * (seconds <= 2400.0).mean(), rel=0.03, abs=1e-5)


def test_feasibility_is_the_probability() -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85")
    prediction = predicted(job, "cost")
    probability = Feasibility()(prediction, state(job))
    assert probability == pytest.approx(prediction.feasible(job.problem))
    assert ((probability >= 0) & (probability <= 1)).all()


def test_the_minimum_billed_makes_fast_runs_no_cheaper() -> None:
    job = small_job(billing=Billing(minimum_s=3600.0))
    prediction = predicted(job, "log time")
    best = 0.4
    gain = ConstrainedImprovement()(prediction, state(job, best))[0]
    for row in ROWS:
        _, usd, _ = drawn(job, prediction, row)
        assert close(gain[row], np.maximum(best - usd, 0.0))


# Without a feasible run ----------------------------------------------------------------------------------------------------


def test_the_guess_of_the_papers_is_the_worst_value_plus_three_sigma() -> None:
    job = small_job("runtime <= 40m")
    prediction, here = predicted(job, "cost"), state(job)
    worst = max(seen.outcome.charged_usd for seen in here.observations)
    sigma = prediction.std[0, here.open, 0].max()
    assert guessed_best(prediction, here, "sigma")[0] == pytest.approx(worst + 3 * sigma)
    assert guessed_best(prediction, here, "ceiling")[0] == pytest.approx(
        2400.0 * float(job.problem.price[here.open].max())
    )
    known = state(job, 0.3)
    assert guessed_best(prediction, known, "sigma")[0] == 0.3


def test_a_model_of_log_time_uses_the_ceiling() -> None:
    job = small_job("runtime <= 40m")
    prediction, here = predicted(job, "log time"), state(job)
    ceiling = 2400.0 * float(job.problem.price[here.open].max())
    assert guessed_best(prediction, here, "sigma")[0] == pytest.approx(ceiling)
    free = state(small_job())
    assert guessed_best(prediction, free, "sigma")[0] == pytest.approx(2 * free.worst)


def test_the_guess_for_other_objectives_is_in_their_unit() -> None:
    job = small_job("runtime <= 40m", objective="maximize accuracy")
    prediction, here = predicted(job, "cost"), state(job)
    accuracies = [seen.outcome.metrics["accuracy"] for seen in here.observations]
    sigma = prediction.std[0, here.open, 1].max()
    assert guessed_best(prediction, here, "sigma")[0] == pytest.approx(-min(accuracies) + 3 * sigma)
    slow = small_job("runtime <= 2m", objective="time")
    prediction, here = predicted(slow, "cost"), state(slow)
    sigma = (prediction.std[0, :, 0] / slow.problem.price)[here.open].max()
    assert guessed_best(prediction, here, "sigma")[0] == pytest.approx(float(here.seconds.max()) + 3 * sigma)


def test_with_a_guess_feasible_rows_have_an_expected_improvement() -> None:
    job = small_job("runtime <= 40m")
    for form in ("cost", "log time"):
        gain = ConstrainedImprovement()(predicted(job, form), state(job))
        assert (gain > 0).sum() > 12
        assert np.isfinite(gain).all()


def test_only_constrained_improvement_is_simple_enough_for_a_kernel() -> None:
    assert isinstance(ConstrainedImprovement(), ConstrainedAcquisition)
    assert not isinstance(Improvement(), ConstrainedAcquisition)
    assert not isinstance(Feasibility(), ConstrainedAcquisition)
