"""Gains: expected improvement under limits, against Monte Carlo for every goal and form of belief."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.gains import ConstrainedImprovement, Feasibility, Improvement, guessed_best
from lynceus.parts import ConstrainedGain
from lynceus.problem import Tariff
from lynceus.situation import Belief, FloatArray, Situation
from lynceus.testing import SmallJob, small_job

DRAWS = 400_000


def believed(job: SmallJob, form: str) -> Belief:
    rng = np.random.default_rng(8)
    shape = (1, 24, 1 + len(job.problem.metrics))
    mean, std = rng.uniform(0.7, 1.0, shape), rng.uniform(0.02, 0.1, shape)
    if form == "cost":
        mean[:, :, 0], std[:, :, 0] = rng.uniform(0.2, 0.6, shape[:2]), rng.uniform(0.05, 0.2, shape[:2])
    else:
        mean[:, :, 0], std[:, :, 0] = rng.uniform(6.5, 8.0, shape[:2]), rng.uniform(0.1, 0.6, shape[:2])
    return Belief(form, mean, std)  # type: ignore[arg-type]


def situation(job: SmallJob, best: float = math.nan) -> Situation:
    return replace(Situation.present(job.problem, job.finished(job.order_of_runs[:5])), best=np.array([best]))


def drawn(job: SmallJob, belief: Belief, row: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds, dollars and metrics of many imagined runs of a row; a cost is booted and has no rounding here."""
    rng = np.random.default_rng(row)
    draws = rng.normal(belief.mean[0, row], belief.std[0, row], (DRAWS, belief.mean.shape[2]))
    tariff, price = job.problem.tariff, float(job.problem.price[row])
    if belief.form == "cost":
        usd = draws[:, 0]
        seconds = (usd - tariff.fee_usd) / price - tariff.boot_s
    else:
        seconds = np.exp(draws[:, 0])
        usd = tariff.charges(seconds, np.array(price))
    return seconds, usd, draws[:, 1:]


def close(value: float, samples: FloatArray) -> bool:
    return abs(value - float(samples.mean())) <= 5 * float(samples.std()) / math.sqrt(len(samples)) + 1e-12


ROWS = (0, 7, 13, 22)
BOOT = Tariff(boot_s=60.0, fee_usd=0.01)


@pytest.mark.parametrize("tariff", [Tariff(), BOOT])
def test_the_exact_form_is_monte_carlo(tariff: Tariff) -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85", tariff=tariff)
    for form in ("cost", "log time"):
        belief, best = believed(job, form), 0.45
        gain = ConstrainedImprovement(exact=True)(belief, situation(job, best))[0]
        for row in ROWS:
            seconds, usd, metrics = drawn(job, belief, row)
            samples = np.maximum(best - usd, 0.0) * (seconds <= 2400.0) * (metrics[:, 0] >= 0.85)
            assert close(gain[row], samples), (form, row)


def test_the_papers_form_is_the_product() -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85")
    belief, best = believed(job, "cost"), 0.45
    gain = ConstrainedImprovement()(belief, situation(job, best))[0]
    for row in ROWS:
        seconds, usd, metrics = drawn(job, belief, row)
        product = np.maximum(best - usd, 0.0).mean() * (seconds <= 2400.0).mean() * (metrics[:, 0] >= 0.85).mean()
        assert gain[row] == pytest.approx(product, rel=0.02, abs=1e-5)


def test_without_a_limit_both_forms_are_plain_improvement() -> None:
    job = small_job()
    belief, here = believed(job, "cost"), situation(job, 0.45)
    plain = Improvement()(belief, here)
    assert ConstrainedImprovement()(belief, here) == pytest.approx(plain)
    assert ConstrainedImprovement(exact=True)(belief, here) == pytest.approx(plain)
    limited = situation(small_job("runtime <= 10m", "accuracy >= 0.95"), 0.45)
    assert Improvement()(believed(small_job("accuracy >= 0.95"), "cost"), limited) == pytest.approx(
        Improvement()(believed(small_job("accuracy >= 0.95"), "cost"), situation(small_job("accuracy >= 0.95"), 0.45))
    )


@pytest.mark.parametrize("form", ["cost", "log time"])
@pytest.mark.parametrize("tariff", [Tariff(), BOOT])
def test_the_goal_of_time(form: str, tariff: Tariff) -> None:
    job = small_job("runtime <= 40m", goal="time", tariff=tariff)
    belief, best = believed(job, form), 1500.0
    gain = ConstrainedImprovement(exact=True)(belief, situation(job, best))[0]
    for row in ROWS:
        seconds, _, _ = drawn(job, belief, row)
        assert close(gain[row], np.maximum(best - seconds, 0.0) * (seconds <= 2400.0))


@pytest.mark.parametrize(("goal", "sign"), [("maximize accuracy", -1.0), ("minimize accuracy", 1.0)])
def test_the_goal_of_a_metric(goal: str, sign: float) -> None:
    job = small_job("runtime <= 40m", goal=goal)
    belief = believed(job, "log time")
    best = sign * 0.85
    gain = ConstrainedImprovement()(belief, situation(job, best))[0]
    for row in ROWS:
        seconds, _, metrics = drawn(job, belief, row)
        improvement = np.maximum(best - sign * metrics[:, 0], 0.0)
        assert gain[row] == pytest.approx(improvement.mean() * (seconds <= 2400.0).mean(), rel=0.03, abs=1e-5)


def test_feasibility_is_the_chance() -> None:
    job = small_job("runtime <= 40m", "accuracy >= 0.85")
    belief = believed(job, "cost")
    chance = Feasibility()(belief, situation(job))
    assert chance == pytest.approx(belief.feasible(job.problem))
    assert ((chance >= 0) & (chance <= 1)).all()


def test_the_minimum_billed_makes_fast_runs_no_cheaper() -> None:
    job = small_job(tariff=Tariff(minimum_s=3600.0))
    belief = believed(job, "log time")
    best = 0.4
    gain = ConstrainedImprovement()(belief, situation(job, best))[0]
    for row in ROWS:
        _, usd, _ = drawn(job, belief, row)
        assert close(gain[row], np.maximum(best - usd, 0.0))


# While nothing feasible is known -------------------------------------------------------------------------------------------


def test_the_papers_stand_in_is_the_worst_and_three_sigma() -> None:
    job = small_job("runtime <= 40m")
    belief, here = believed(job, "cost"), situation(job)
    worst = max(seen.outcome.charged_usd for seen in here.history)
    sigma = belief.std[0, here.open, 0].max()
    assert guessed_best(belief, here, "sigma")[0] == pytest.approx(worst + 3 * sigma)
    assert guessed_best(belief, here, "root sigma")[0] == pytest.approx(worst + 3 * math.sqrt(sigma))
    assert guessed_best(belief, here, "ceiling")[0] == pytest.approx(2400.0 * float(job.problem.price[here.open].max()))
    known = situation(job, 0.3)
    assert guessed_best(belief, known, "sigma")[0] == 0.3


def test_a_model_of_log_time_takes_the_ceiling() -> None:
    job = small_job("runtime <= 40m")
    belief, here = believed(job, "log time"), situation(job)
    ceiling = 2400.0 * float(job.problem.price[here.open].max())
    assert guessed_best(belief, here, "sigma")[0] == pytest.approx(ceiling)
    free = situation(small_job())
    assert guessed_best(belief, free, "sigma")[0] == pytest.approx(2 * free.worst)


def test_the_stand_in_for_other_goals_is_in_their_unit() -> None:
    job = small_job("runtime <= 40m", goal="maximize accuracy")
    belief, here = believed(job, "cost"), situation(job)
    accuracies = [seen.outcome.metrics["accuracy"] for seen in here.history]
    sigma = belief.std[0, here.open, 1].max()
    assert guessed_best(belief, here, "sigma")[0] == pytest.approx(-min(accuracies) + 3 * sigma)
    slow = small_job("runtime <= 2m", goal="time")
    belief, here = believed(slow, "cost"), situation(slow)
    sigma = (belief.std[0, :, 0] / slow.problem.price)[here.open].max()
    assert guessed_best(belief, here, "sigma")[0] == pytest.approx(float(here.seconds.max()) + 3 * sigma)


def test_a_stand_in_leaves_every_feasible_row_a_gain() -> None:
    job = small_job("runtime <= 40m")
    for form in ("cost", "log time"):
        gain = ConstrainedImprovement()(believed(job, form), situation(job))
        assert (gain > 0).sum() > 12
        assert np.isfinite(gain).all()


def test_only_constrained_improvement_is_simple_enough_for_a_kernel() -> None:
    assert isinstance(ConstrainedImprovement(), ConstrainedGain)
    assert not isinstance(Improvement(), ConstrainedGain)
    assert not isinstance(Feasibility(), ConstrainedGain)
