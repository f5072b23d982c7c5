"""Averages of models, and the trend along the price, against what they must equal."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.situation import Belief, Situation
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.inputs import log_price
from lynceus.surrogate.mixture import Mixture
from lynceus.surrogate.scaling import AlongPrice
from lynceus.surrogate.trees import Trees
from lynceus.testing import check_surrogate, small_job

LOG_TREES = Trees(trees=8, target="log time")


@dataclass(frozen=True)
class Fixed:
    """A belief that is the same everywhere."""

    mean: float
    std: float
    form: str = "log time"

    def __call__(self, situation: Situation, seed: int) -> Belief:
        shape = (len(situation), len(situation.open), situation.targets)
        return Belief(self.form, np.full(shape, self.mean), np.full(shape, self.std))  # type: ignore[arg-type]


def situation(n: int = 5) -> Situation:
    job = small_job("runtime <= 30m")
    return Situation.present(job.problem, job.finished(job.order_of_runs[:n]))


def test_a_mixture_has_the_moments_of_draws_from_its_members() -> None:
    belief = Mixture((Fixed(1.0, 0.5), Fixed(3.0, 0.2), Fixed(2.0, 1.0)))(situation(), 1)
    rng = np.random.default_rng(3)
    which = rng.integers(0, 3, 400_000)
    draws = np.array([1.0, 3.0, 2.0])[which] + np.array([0.5, 0.2, 1.0])[which] * rng.standard_normal(len(which))
    assert belief.mean[0, 0, 0] == pytest.approx(draws.mean(), abs=0.01)
    assert belief.std[0, 0, 0] == pytest.approx(draws.std(), abs=0.01)


def test_a_mixture_of_one_is_that_one() -> None:
    alone, mixed = LOG_TREES(situation(), 4), Mixture((LOG_TREES,))(situation(), 4)
    np.testing.assert_allclose(mixed.mean, alone.mean, atol=1e-12)
    np.testing.assert_allclose(mixed.std, alone.std, atol=1e-12)


def test_models_of_different_units_do_not_mix() -> None:
    with pytest.raises(ValueError, match=r"one unit.*cost.*log time"):
        Mixture((LOG_TREES, Trees(trees=3)))(situation(), 1)
    with pytest.raises(ValueError, match="at least one"):
        Mixture(())


@pytest.mark.parametrize(
    "surrogate",
    [
        Mixture((LOG_TREES, Trees(trees=4, target="log time", bag="whole", splits="random"))),
        AlongPrice(LOG_TREES, slope=-0.7),
        AlongPrice(Mixture((GaussianProcess(slope=0.4), LOG_TREES)), slope=-0.5),
    ],
    ids=["mixture", "along-price", "both"],
)
def test_they_are_surrogates_like_any_other(surrogate: AlongPrice | Mixture) -> None:
    check_surrogate(surrogate, tolerance=1e-6)


def test_what_the_price_explains_is_taken_out_and_put_back() -> None:
    """On a job whose time is a power of the price, a model that learns nothing but a level is exact everywhere."""
    here = situation(3)
    trend = -0.8 * log_price(here.problem.space)
    exact = replace(here, seconds=np.exp(5.0 + trend[here.rows]))
    belief = AlongPrice(LOG_TREES, slope=-0.8)(exact, 1)
    np.testing.assert_allclose(belief.mean[0, :, 0], 5.0 + trend, atol=1e-9)


def test_after_cheap_misses_dear_machines_are_believed_faster() -> None:
    """Only lower bounds on the cheapest machines are known; without the trend a process expects the same of every machine."""
    job = small_job("runtime <= 30m")
    cheapest = np.argsort(job.problem.price, kind="stable")[:3]
    here = Situation.present(job.problem, job.finished([int(row) for row in cheapest]))
    late = replace(here, seconds=np.full(3, 1800.0), bound_s=np.full(3, 1800.0))
    dear = int(np.argmax(job.problem.price))
    plain = GaussianProcess()(late, 1).feasible(job.problem)[0, dear]
    along = AlongPrice(GaussianProcess(slope=0.4), slope=-0.6)(late, 1).feasible(job.problem)[0, dear]
    assert along > plain + 0.1


def test_a_trend_needs_log_time() -> None:
    with pytest.raises(ValueError, match="log time"):
        AlongPrice(Trees(trees=3))(situation(), 1)


def test_a_process_centred_at_the_deadline_does_not_give_up_after_cheap_misses() -> None:
    """All that is known is that cheap machines are late; somebody who set the deadline thought that others are not."""
    job = small_job("runtime <= 30m")
    cheapest = np.argsort(job.problem.price, kind="stable")[:3]
    here = Situation.present(job.problem, job.finished([int(row) for row in cheapest]))
    late = replace(here, seconds=np.full(3, 3600.0), bound_s=np.full(3, 3600.0))
    dear = int(np.argmax(job.problem.price))
    chance = {
        centre: GaussianProcess(centre=centre, slope=0.4)(late, 1).feasible(job.problem)[0, dear]
        for centre in ("data", "deadline")
    }
    assert chance["deadline"] > chance["data"] + 0.1


def test_without_a_deadline_the_centre_is_the_data() -> None:
    here = replace(situation(3))
    free = replace(here, problem=replace(here.problem, limits=()))
    beliefs = [GaussianProcess(centre=centre)(free, 1) for centre in ("data", "deadline")]
    np.testing.assert_array_equal(beliefs[0].mean, beliefs[1].mean)
