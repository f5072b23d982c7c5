"""Averages of models, and the trend along the price, against exact values."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.models.features import log_price
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.mixture import Mixture
from lynceus.models.prediction import Prediction
from lynceus.models.price_trend import PriceTrend
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.testing.job import small_job
from lynceus.testing.surrogates import check_surrogate

LOG_TREES = Trees(trees=8, target="log time")


@dataclass(frozen=True)
class Fixed:
    """The same prediction everywhere."""

    mean: float
    std: float
    form: str = "log time"

    def __call__(self, state: State, seed: int) -> Prediction:
        shape = (len(state), len(state.open), state.targets)
        return Prediction(self.form, np.full(shape, self.mean), np.full(shape, self.std))  # type: ignore[arg-type]


def state(n: int = 5) -> State:
    job = small_job("runtime <= 30m")
    return State.present(job.problem, job.finished(job.order_of_runs[:n]))


def test_a_mixture_has_the_moments_of_draws_from_its_members() -> None:
    prediction = Mixture((Fixed(1.0, 0.5), Fixed(3.0, 0.2), Fixed(2.0, 1.0)))(state(), 1)
    rng = np.random.default_rng(3)
    which = rng.integers(0, 3, 400_000)
    draws = np.array([1.0, 3.0, 2.0])[which] + np.array([0.5, 0.2, 1.0])[which] * rng.standard_normal(len(which))
    assert prediction.mean[0, 0, 0] == pytest.approx(draws.mean(), abs=0.01)
    assert prediction.std[0, 0, 0] == pytest.approx(draws.std(), abs=0.01)


def test_a_mixture_of_one_is_that_one() -> None:
    alone, mixed = LOG_TREES(state(), 4), Mixture((LOG_TREES,))(state(), 4)
    np.testing.assert_allclose(mixed.mean, alone.mean, atol=1e-12)
    np.testing.assert_allclose(mixed.std, alone.std, atol=1e-12)


def test_models_of_different_units_do_not_mix() -> None:
    with pytest.raises(ValueError, match=r"one unit.*cost.*log time"):
        Mixture((LOG_TREES, Trees(trees=3)))(state(), 1)
    with pytest.raises(ValueError, match="at least one"):
        Mixture(())


@pytest.mark.parametrize(
    "surrogate",
    [
        Mixture((LOG_TREES, Trees(trees=4, target="log time", bag="whole", splits="random"))),
        PriceTrend(LOG_TREES, slope=-0.7),
        PriceTrend(Mixture((GaussianProcess(slope=0.4), LOG_TREES)), slope=-0.5),
    ],
    ids=["mixture", "price-trend", "both"],
)
def test_they_meet_the_contract_of_surrogates(surrogate: PriceTrend | Mixture) -> None:
    check_surrogate(surrogate, tolerance=1e-6)


def test_the_trend_along_the_price_is_removed_and_added() -> None:
    """On a job whose time is a power of the price, a model that only learns a constant is exact everywhere."""
    here = state(3)
    trend = -0.8 * log_price(here.problem.space)
    exact = replace(here, seconds=np.exp(5.0 + trend[here.rows]))
    prediction = PriceTrend(LOG_TREES, slope=-0.8)(exact, 1)
    np.testing.assert_allclose(prediction.mean[0, :, 0], 5.0 + trend, atol=1e-9)


def test_after_late_runs_on_cheap_machines_expensive_ones_are_predicted_faster() -> None:
    """Only lower bounds on the cheapest machines are known; without the trend a process expects the same of every machine."""
    job = small_job("runtime <= 30m")
    cheapest = np.argsort(job.problem.price, kind="stable")[:3]
    here = State.present(job.problem, job.finished([int(row) for row in cheapest]))
    late = replace(here, seconds=np.full(3, 1800.0), bound_s=np.full(3, 1800.0))
    expensive = int(np.argmax(job.problem.price))
    plain = GaussianProcess()(late, 1).feasible(job.problem)[0, expensive]
    along = PriceTrend(GaussianProcess(slope=0.4), slope=-0.6)(late, 1).feasible(job.problem)[0, expensive]
    assert along > plain + 0.1


def test_a_trend_needs_log_time() -> None:
    with pytest.raises(ValueError, match="log time"):
        PriceTrend(Trees(trees=3))(state(), 1)


def test_a_process_centred_at_the_deadline_still_expects_feasible_rows_after_late_runs() -> None:
    """Only late runs on cheap machines are known; the deadline as prior mean says that other machines may meet it."""
    job = small_job("runtime <= 30m")
    cheapest = np.argsort(job.problem.price, kind="stable")[:3]
    here = State.present(job.problem, job.finished([int(row) for row in cheapest]))
    late = replace(here, seconds=np.full(3, 3600.0), bound_s=np.full(3, 3600.0))
    expensive = int(np.argmax(job.problem.price))
    probability = {
        centre: GaussianProcess(centre=centre, slope=0.4)(late, 1).feasible(job.problem)[0, expensive]
        for centre in ("data", "deadline")
    }
    assert probability["deadline"] > probability["data"] + 0.1


def test_without_a_deadline_the_centre_is_the_data() -> None:
    here = replace(state(3))
    free = replace(here, problem=replace(here.problem, constraints=()))
    predictions = [GaussianProcess(centre=centre)(free, 1) for centre in ("data", "deadline")]
    np.testing.assert_array_equal(predictions[0].mean, predictions[1].mean)
